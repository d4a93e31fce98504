"""What TenSet's 52 million records would cost here, and what feeding 1,000 devices takes.

    python -m tools.benchmarks.scale --work runs/scale      # writes tools/results/scale.json

Measured, each at two sizes, so that the slope is what one record more costs: importing a
MetaSchedule log, computing features. Training on two workers of a Dask cluster against one.
Streaming and training out of core come from ``tools/results/data.json``. A fleet: one device on
loopback and this machine itself run the same library in turns; what the link adds, and what client
and builder compute for each program. The rest is extrapolated in a straight line.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from costlib.data.dataset import Dataset
from costlib.data.sample import sample
from costlib.features.build import build_features
from costlib.hardware import Hardware
from costlib.logs.export import export_metaschedule
from costlib.logs.importers import import_logs
from costlib.measure.device import Tracker, start_device
from costlib.measure.fleet import Fleet
from costlib.measure.measurer import Measurer
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.training.cluster import connected, fit_on_cluster
from costlib.training.protocol import most_measured_hardware
from costlib.tvm_compat.api import entry_argument_shapes
from costlib.tvm_compat.rpc import start_tracker
from tools.benchmarks.operators import heaviest_task, random_modules
from tools.evidence.files import ZOO, read_result, write_result

TENSET_RECORDS = 52_000_000
TENSET_TREES = 400
DEVICES = 1000
TASKS = (20, 60)
PER_TASK = 16
FLEET_TASK = "dense 128 768 768"
FLEET_PROGRAMS = 32


def main() -> None:
    """Measure what is missing and extrapolate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--tasks", type=int, nargs=2, default=TASKS, help="of the two sizes")
    given = parser.parse_args()
    work, tasks = given.work, tuple(given.tasks)
    result = read_result("scale")
    phases: dict[str, Callable[[Path], dict[str, Any]]] = {
        "import": lambda folder: _slope(folder, tasks, _time_import),
        "features": lambda folder: _slope(folder, tasks, _time_features),
        "cluster": lambda folder: _cluster(folder, tasks[-1]),
        "fleet": _fleet,
    }
    for name, phase in phases.items():
        if name not in result:
            result[name] = phase(work)
            print(name, result[name], flush=True)
            write_result("scale", result)
    result["hardware"] = Hardware.local().hardware_id
    result["cores"] = os.cpu_count()
    data = read_result("data")
    result["extrapolated"] = {
        "tenset": _tenset(result, data),
        "fleet": _thousand_devices(result["fleet"]),
    }
    write_result("scale", result)


def _slope(
    work: Path, tasks: Sequence[int], seconds: Callable[[Path, int], tuple[int, float]]
) -> dict[str, Any]:
    """Time two sizes; what one record more takes on all cores of this machine."""
    (few, few_secs), (many, many_secs) = (seconds(work, count) for count in tasks)
    return {
        "records": [few, many],
        "seconds": [round(few_secs, 1), round(many_secs, 1)],
        "ms_per_record": round(1e3 * (many_secs - few_secs) / (many - few), 3),
    }


def _some(work: Path, tasks: int) -> Dataset:
    """Return a part of the shipped dataset."""
    folder = work / f"{tasks}-tasks"
    if folder.exists():
        return Dataset.open(folder)
    return sample(ZOO, folder, PER_TASK, tasks)


def _time_import(work: Path, tasks: int) -> tuple[int, float]:
    dataset = _some(work, tasks)
    log, imported = work / f"log-{tasks}", work / f"imported-{tasks}"
    for folder in (log, imported):
        shutil.rmtree(folder, ignore_errors=True)
    export_metaschedule(dataset, log, hardware_id=most_measured_hardware(dataset))
    started = time.perf_counter()
    report = import_logs([log], imported)
    return report.imported, time.perf_counter() - started


def _time_features(work: Path, tasks: int) -> tuple[int, float]:
    dataset = _some(work, tasks)
    shutil.rmtree(dataset.path / "features", ignore_errors=True)
    hardware_id = most_measured_hardware(dataset)
    programs = []
    started = time.perf_counter()
    build_features(dataset, hardware_id, lambda _, total: programs.append(total))
    return programs[-1], time.perf_counter() - started


def _cluster(work: Path, tasks: int) -> dict[str, Any]:
    """Train the same trees with one Dask worker and with two, each on one core."""
    dataset = _some(work, tasks)
    hardware = [most_measured_hardware(dataset)]
    seconds: dict[str, list[float]] = {"1": [], "2": []}
    for _ in range(3):
        for workers, taken in seconds.items():
            with connected(f"local:{workers}") as client:
                model = GbdtModel(GbdtConfig(num_trees=100))
                started = time.perf_counter()
                programs, _ = fit_on_cluster(client, dataset, model, hardware=hardware)
                taken.append(round(time.perf_counter() - started, 2))
    return {
        "programs": programs,
        "trees": 100,
        "seconds": seconds,
        "two_workers_speed": round(float(np.median(seconds["1"]) / np.median(seconds["2"])), 2),
    }


def _fleet(work: Path) -> dict[str, Any]:
    """Run programs here and on a device on loopback, in turns; count what the client computes."""
    hardware = Hardware.local()
    task = heaviest_task(FLEET_TASK, hardware)
    modules = random_modules(task, FLEET_PROGRAMS, 0)
    server = start_tracker()
    tracker = Tracker(host="127.0.0.1", port=server.port, key="scale")
    device = start_device(tracker, hardware)
    try:
        time.sleep(5)
        with Fleet(tracker) as fleet, Measurer(hardware) as here:
            builds = [
                here.build_job(module, here.server.folder / f"{number}.so")
                for number, module in enumerate(modules)
            ]
            started = time.perf_counter()
            here.server.work(builds)
            build_secs = (time.perf_counter() - started) / len(builds)
            there = Measurer(hardware, reference=here.reference, devices=fleet.pool(hardware))
            taken: dict[str, list[float]] = {"here": [], "device": []}
            link_secs = 0.0
            with there:
                for build, module in zip(builds, modules, strict=True):
                    arguments = entry_argument_shapes(module)
                    for name, measurer in (("here", here), ("device", there)):
                        before = _client_secs(fleet)
                        started = time.perf_counter()
                        measurer.run_library(Path(build.path), arguments)
                        taken[name].append(time.perf_counter() - started)
                        if name == "device":
                            link_secs += _client_secs(fleet) - before
    finally:
        device.terminate()
        server.terminate()
    return {
        "programs": len(builds),
        "task": FLEET_TASK,
        "build_core_s": round(build_secs * (os.cpu_count() or 1), 4),
        "run_s": round(float(np.median(taken["here"])), 4),
        "run_on_device_s": round(float(np.median(taken["device"])), 4),
        "link_s": round(float(np.median(np.subtract(taken["device"], taken["here"]))), 4),
        "client_core_s": round(link_secs / len(builds), 4),
    }


def _client_secs(fleet: Fleet) -> float:
    """Processor seconds that this process and its links have taken."""
    processes = [psutil.Process(), *(psutil.Process(device.pid) for device in fleet.devices)]
    times = [process.cpu_times() for process in processes]
    return float(sum(one.user + one.system for one in times))


def _tenset(result: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Extrapolate to TenSet's records on this machine."""
    trained = [name for name, row in data.items() if isinstance(row, dict) and "train" in row]
    sizes = sorted(trained, key=lambda name: int(name.split()[0]))
    largest = data[sizes[-1]]
    smaller = data[sizes[-2]]
    count = int(sizes[-1].split()[0])
    mib = (largest["train"]["peak_mib"] - smaller["train"]["peak_mib"]) / (
        count - int(sizes[-2].split()[0])
    )
    trees = TENSET_TREES / largest["train"]["trees"]
    hours = TENSET_RECORDS / 3600
    bytes_each = sum(
        largest["generate"][f"{part}_bytes_per_program"] for part in ("measurement", "feature")
    )
    return {
        "records": TENSET_RECORDS,
        "import_h": round(hours * result["import"]["ms_per_record"] / 1e3, 1),
        "features_h": round(hours * result["features"]["ms_per_record"] / 1e3, 1),
        "stream_h": round(hours * largest["stream"]["us_per_program"] / 1e6, 2),
        "train_h": round(hours * trees * largest["train"]["us_per_program"] / 1e6, 1),
        "trees": TENSET_TREES,
        "train_peak_gib": round(mib * TENSET_RECORDS / 1024, 1),
        "disk_gib": round(bytes_each * TENSET_RECORDS / 2**30, 1),
    }


def _thousand_devices(fleet: dict[str, Any]) -> dict[str, Any]:
    """What keeps 1,000 such devices busy: programs are built while others run."""
    per_device = 1 / fleet["run_on_device_s"]
    return {
        "devices": DEVICES,
        "programs_per_s": round(DEVICES * per_device),
        "builder_cores": round(DEVICES * per_device * fleet["build_core_s"]),
        "client_cores": round(DEVICES * per_device * fleet["client_core_s"]),
        "tenset_h": round(TENSET_RECORDS / (DEVICES * per_device) / 3600, 2),
    }


if __name__ == "__main__":
    main()
