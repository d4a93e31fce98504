"""One file for all shapes of a range against networks that are tuned for one shape alone.

    python -m tools.benchmarks.shapes bert_mini --dim sequence=16:128 --runs runs/shapes

The range is tuned first, with twice the trials of its largest shape alone. At each of 50 random
shapes the file is then compared with PyTorch, and timed in turns with it; padding inputs and
cropping outputs count. At a random sample of these, ``--alone``, a network is tuned for that shape
alone, with 16 trials a task, and timed in the same turns. After each shape
``tools/results/shapes.json`` is written. What is there is not measured again, and a run that was
cut off goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import save_arrays
from costlib.files import write_file
from costlib.hardware import Hardware
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.originals import call_library
from costlib.tuning.ranges import arguments_for, compared_shape
from costlib.tuning.result import RESULT, TuneResult, read_result
from costlib.tuning.session import RUN
from costlib.tuning.tensors import cropped_to
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads import extract_tasks
from costlib.workloads.ranges.dimension import Dims, parse_dims
from costlib.workloads.ranges.symbolic import Symbolic, symbolic
from costlib.workloads.ranges.table import Point
from tools.evidence.files import RESULTS
from tools.evidence.in_ranges import AtShape, InRange, summarise_ranges

_PER_TASK = 16
_TURNS = 5
_TURN_SECS = 0.1


def main() -> None:
    """Measure the shapes that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", help="of the zoo")
    parser.add_argument("--dim", action="append", required=True)
    parser.add_argument("--shapes", type=int, default=50)
    parser.add_argument("--alone", type=int, default=5, help="of these, tuned alone")
    parser.add_argument("--per-task", type=int, default=_PER_TASK, help="trials of a shape alone")
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    parser.add_argument("--out", type=Path, default=RESULTS / "shapes.json")
    given = parser.parse_args()
    dims = parse_dims(given.dim)
    network = symbolic(given.network, dims)
    assert network is not None
    hardware = Hardware.local()
    runs = given.runs / "-".join([given.network, *(f"{n}{a}to{b}" for n, (a, b) in dims.items())])
    alone = {
        sizes: _name_of(given.network, network.dims, sizes)
        for sizes in sample_of(network, given.shapes, given.alone)
    }
    largest = _name_of(given.network, network.dims, [dim.high for dim in network.dims])
    trials = given.per_task * len(extract_tasks(largest, hardware))
    in_range = tuned(given.network, runs / "range", 2 * trials, dim=dims)
    row = InRange(
        network=given.network,
        dims=dims,
        hardware=hardware.hardware_id,
        trials=in_range.trials,
        trials_of_one=trials,
        drawn=given.shapes,
        sampled=given.alone,
    )
    rows = {one.case: one for one in read_rows(given.out)}
    known = rows[row.case].shapes if row.case in rows else ()
    library = Path(in_range.ranges[0].library)
    with Measurer(hardware) as measurer:
        for sizes in shapes_of(network, given.shapes):
            if _named(network, sizes) in [shape.sizes for shape in known]:
                continue
            by_itself = None
            if (name := alone.get(sizes)) is not None:
                trials = given.per_task * len(extract_tasks(name, hardware))
                by_itself = tuned(name, runs / name, trials)
            known = (*known, at_shape(network, sizes, library, by_itself, measurer))
            rows[row.case] = row.model_copy(update={"shapes": known})
            content = summarise_ranges(rows.values())
            write_file(given.out, (json.dumps(content, indent=1) + "\n").encode())
            print(_line(known[-1]), flush=True)


def read_rows(file: Path) -> list[InRange]:
    """Return what a result file holds; nothing if it is not there."""
    content = json.loads(file.read_text()) if file.exists() else {"networks": []}
    return [InRange.model_validate(row) for row in content["networks"]]


def tuned(source: str, out: Path, trials: int, dim: Dims | None = None) -> TuneResult:
    """Tune a network, unless that was done; go on with what was cut off."""
    if (out / RESULT).exists():
        return read_result(out)
    begun = any((out / file).exists() for file in (RUN, TRIALS))
    return tune(source, out=out, trials=trials, resume=begun, dim=dim)


def shapes_of(network: Symbolic, count: int) -> list[tuple[int, ...]]:
    """Draw different shapes, the same each time: so many, or all that there are."""
    rng = np.random.default_rng(0)
    most = int(np.prod([len(dim) for dim in network.dims]))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < min(count, most):
        drawn = (int(rng.integers(dim.low, dim.high, endpoint=True)) for dim in network.dims)
        found[tuple(drawn)] = None
    return list(found)


def sample_of(network: Symbolic, shapes: int, count: int) -> list[tuple[int, ...]]:
    """Draw those of the shapes for which a network is tuned alone, the same each time."""
    drawn = shapes_of(network, shapes)
    places = np.random.default_rng(1).choice(len(drawn), min(count, len(drawn)), replace=False)
    return [drawn[place] for place in sorted(places)]


def _name_of(name: str, dims: Sequence[Any], sizes: Sequence[int]) -> str:
    """Name the network of the zoo that has one shape alone."""
    parts = (f"{dim.name[0]}{extent}" for dim, extent in zip(dims, sizes, strict=True))
    return f"{name}@{'-'.join(parts)}"


def at_shape(
    network: Symbolic,
    sizes: Sequence[int],
    library: Path,
    alone: TuneResult | None,
    measurer: Measurer,
) -> AtShape:
    """Compare a shape with PyTorch; time it in the file, by itself and in PyTorch, in turns."""
    table = CompiledNetwork.load(library).shapes
    assert table is not None, "it was tuned for ranges"

    def call(point: Point, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return call_library(library, arrays, measurer, point.function)[0]

    compared = compared_shape(network, table, sizes, call)
    point, inputs = table.serving(sizes), network.example(sizes)
    arguments = arguments_for(table, sizes, inputs)
    pytorch = network.reference(sizes).timed(inputs)
    with ScratchFolder() as folder:
        save_arrays(folder / "larger", arguments)
        save_arrays(folder / "inputs", inputs)
        jobs = {"range_s": _job(library, point.function, folder / "larger")}
        if alone is not None:
            jobs["alone_s"] = _job(Path(alone.networks[0].library), MAIN, folder / "inputs")
        seconds = _in_turns(jobs, pytorch, measurer)
    specs = network.signature(point.sizes).outputs
    outputs = [np.zeros(spec.shape, spec.dtype) for spec in specs]

    def handle() -> None:
        arguments_for(table, sizes, inputs)
        for output, shape in zip(outputs, table.served(sizes).outputs, strict=True):
            cropped_to(output, shape)

    return AtShape(
        sizes=compared.sizes,
        served_by=compared.served_by,
        handling_s=fastest_call(handle, _TURN_SECS),
        max_abs_error=compared.max_abs_error,
        fault=compared.fault,
        alone_trials=None if alone is None else alone.trials,
        **seconds,
    )


def _in_turns(
    jobs: Mapping[str, NetworkJob], call: Callable[[], Any], measurer: Measurer
) -> dict[str, float]:
    """Return the median seconds of each job, and of PyTorch."""
    turns: dict[str, list[float]] = {name: [] for name in (*jobs, "pytorch_s")}
    for _ in range(_TURNS):
        for name, job in jobs.items():
            timing = measurer.run_job(job).timing
            assert timing is not None, "it ran a moment ago"
            turns[name].append(timing.run_secs[0])
        turns["pytorch_s"].append(fastest_call(call, _TURN_SECS))
    return {name: float(np.median(secs)) for name, secs in turns.items()}


def _job(library: Path, function: str, inputs: Path) -> NetworkJob:
    return NetworkJob(
        path=str(library.resolve()), function=function, inputs=str(inputs), secs=_TURN_SECS
    )


def _named(network: Symbolic, sizes: Sequence[int]) -> dict[str, int]:
    return {dim.name: extent for dim, extent in zip(network.dims, sizes, strict=True)}


def _line(shape: AtShape) -> str:
    beside = "" if shape.of_alone is None else f", {shape.of_alone:.2f} of the speed alone"
    called, pytorch = 1e3 * shape.called_s, 1e3 * shape.pytorch_s
    wrong = f", wrong: {shape.fault}" if shape.fault else ""
    return f"{shape.sizes}: {called:.3f} ms, PyTorch {pytorch:.3f} ms{beside}{wrong}"


if __name__ == "__main__":
    main()
