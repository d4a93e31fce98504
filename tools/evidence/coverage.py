"""Try many architectures: does each import, and does it compute what its original computes?

    python -m tools.evidence.coverage                          # all that have no record yet
    python -m tools.evidence.coverage timm.resnet18 --minutes 5   # these again
    python -m tools.evidence.coverage --family decoders

Writes ``tools/results/coverage.json`` after each one, and goes on where it was stopped. All models
are small, with random weights; nothing is downloaded. Each is checked in a process of its own, with
limits on time and memory; LLVM compiles it without optimisations.

The packages that the architectures are taken from are not dependencies of costlib; those of a
package that is not installed are recorded as not tried. ``torchvision`` has to be the release that
was made for the installed ``torch``, or it takes it away::

    pip install timm torchvision transformers diffusers onnx onnxruntime -c constraints.txt
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

from costlib.errors import CostlibError, quoted
from tools.evidence.architectures import ARCHITECTURES
from tools.evidence.architectures.architecture import Architecture
from tools.evidence.commit import head
from tools.evidence.files import read_result, write_result

SECS_EACH = 300
MEMORY_BYTES = 12 << 30
PACKAGES = {
    "torch": "torch",
    "transformers": "transformers",
    "timm": "timm",
    "torchvision": "torchvision",
    "diffusers": "diffusers",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "tvm": "apache-tvm",
}
_PRELOADED = [
    "costlib.tuning.check",
    "costlib.workloads.importers.aten",
    "torch._functorch.aot_autograd",
    "torch.export._trace",
    "timm",
    "transformers.generation",
    "transformers.masking_utils",
    "transformers.modeling_layers",
]
"""What takes long to import, and every check needs."""
_APART = {
    "torch.export cannot trace it: ": "not exportable",
    " is random: ": "random",
    " depends on data": "depends on data",
    " depends on a value": "depends on data",
}
"""What a reason says of architectures that no importer could take."""

Record = dict[str, Any]


def main() -> None:
    """Try what is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="try these, and again")
    parser.add_argument("--family", help="try this one alone")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {found.name for found in ARCHITECTURES}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    end = time.monotonic() + 60 * arguments.minutes
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(_PRELOADED)
    for architecture in _wanted(arguments.names, arguments.family):
        if time.monotonic() > end:
            break
        record = _tried(architecture, processes)
        _keep(architecture, record)
        words = [architecture.name, record["status"], f"{record['seconds']:.0f} s"]
        print(*words, record["reason"] or "", flush=True)


def _wanted(names: Iterable[str], family: str | None) -> list[Architecture]:
    """Return those that are named, or those that nothing is known of."""
    known = {
        name
        for records in read_result("coverage").get("families", {}).values()
        for name, record in records.items()
        if record["status"] not in ("not tried", "not made")
    }
    if names := set(names):
        return [found for found in ARCHITECTURES if found.name in names]
    rest = [found for found in ARCHITECTURES if found.name not in known]
    return _in_turn(found for found in rest if family in (None, found.family))


def _in_turn(architectures: Iterable[Architecture]) -> list[Architecture]:
    """Take one of each family after the other, so that a sweep that is cut off knows of all."""
    places: Counter[str] = Counter()
    keyed = []
    for found in architectures:
        keyed.append((places[found.family], found))
        places[found.family] += 1
    return [found for _, found in sorted(keyed, key=lambda pair: pair[0])]


def _tried(architecture: Architecture, processes: Any) -> Record:
    """Check a model in a process that may die of it."""
    if find_spec(architecture.package) is None:
        return _record("not tried", f"{architecture.package} is not installed")
    start = time.monotonic()
    ours, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_check, args=(architecture.name, theirs))
    child.start()
    theirs.close()
    try:
        record: Record = ours.recv() if ours.poll(SECS_EACH) else _record("too slow", None)
    except EOFError:
        child.join()
        code = child.exitcode or 0
        died = signal.Signals(-code).name if code < 0 else f"exit {code}"
        record = _record("crash", died)
    child.kill()
    child.join()
    return record | {"seconds": round(time.monotonic() - start, 1)}


def _record(status: str, reason: str | None) -> Record:
    return {"status": status, "reason": reason, "tasks": 0, "seconds": 0.0, "peak_mib": 0}


def _check(name: str, results: Connection) -> None:
    """Make a model and check it; runs in a process of its own."""
    import torch

    from costlib.tuning.check import check

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.manual_seed(0)
    (architecture,) = (found for found in ARCHITECTURES if found.name == name)
    try:
        source, inputs = architecture.make()
    except Exception as error:
        results.send(_record("not made", quoted(error)))
        return
    try:
        found = check(source, example_inputs=inputs, hardware=_quickly())
    except CostlibError as error:
        record = _record("unsupported", str(error))
    except Exception as error:
        record = _record("traceback", f"{type(error).__name__}: {quoted(error)}")
    else:
        reason = None if found.status == "right" else found.reason
        record = _record(found.status, reason) | {"tasks": len(found.tasks)}
    for words, status in _APART.items():
        if record["status"] == "unsupported" and words in record["reason"]:
            record["status"] = status
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    results.send(record | {"peak_mib": peak})


def _quickly() -> Any:
    """Return this machine without LLVM's optimisations, which most of the time would go into."""
    from costlib.hardware import Hardware

    here = Hardware.local()
    return here.model_copy(update={"target": here.target | {"opt-level": 0}})


def _keep(architecture: Architecture, record: Record) -> None:
    """Write a record into the result file, and drop those of what is no longer tried."""
    from costlib.hardware import Hardware

    old = read_result("coverage").get("families", {})
    known = {name: record for records in old.values() for name, record in records.items()}
    known[architecture.name] = record | {"commit": head()}
    families: dict[str, dict[str, Record]] = {found.family: {} for found in ARCHITECTURES}
    for found in sorted(ARCHITECTURES, key=lambda found: found.name.lower()):
        if found.name in known:
            families[found.family][found.name] = known[found.name]
    write_result(
        "coverage",
        {
            "command": "python -m tools.evidence.coverage",
            "machine": Hardware.local().hardware_id,
            "limits": {"seconds": SECS_EACH, "bytes": MEMORY_BYTES},
            "versions": {name: number for name in PACKAGES if (number := _version(name))},
            "families": {name: records for name, records in sorted(families.items()) if records},
        },
    )


def _version(package: str) -> str | None:
    try:
        return version(PACKAGES[package])
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
