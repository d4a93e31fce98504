"""Find out on a machine with an NVIDIA GPU what ten minutes allow, the most useful first.

    python -m tools.maintenance.gpu OUT
    python -m tools.maintenance.gpu OUT --simulate sm_90      # a rehearsal, without a GPU

Each step writes what it found to ``OUT/steps/`` at once, and goes on where the one before it
failed. Called again, steps that ran through are left, and networks whose trials were not all spent
go on. ``OUT/cuda.json`` is put together from what there is.

In a rehearsal nothing is measured and few programs are built; it proves that every step runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from costlib.errors import CostlibError
from costlib.tvm_compat import tvm
from costlib.tvm_compat.cuda import find_compiler
from tools.maintenance.gpu import data, networks, operators
from tools.maintenance.gpu.bench import Bench, Step

STEPS: dict[str, Step] = {
    "canaries": operators.canaries,
    "outputs": operators.outputs,
    **{name: networks.small(name) for name in networks.SMALL},
    "pytorch": operators.pytorch,
    **{name: networks.held_out(name) for name in networks.HELD_OUT},
    "search": operators.search,
    "stock": operators.beside_stock,
    "collected": data.collected,
    "trained": data.trained,
}
"""In the order in which they run."""

NETWORKS = (*networks.SMALL, *networks.HELD_OUT)
"""Steps that may be stopped before they are complete."""


def main() -> int:
    """Run the steps that are missing; the exit code says whether all of them ran through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="a folder for what is found")
    parser.add_argument("--simulate", metavar="ARCH", help="rehearse for such a GPU: sm_90")
    given = parser.parse_args()
    try:
        bench = (
            Bench.rehearsal(given.simulate, given.out) if given.simulate else Bench.here(given.out)
        )
        same = {
            "compiler": find_compiler(),
            "tvm": tvm.__version__,
            "hardware": bench.hardware.hardware_id,
        }
    except CostlibError as error:
        print(error)
        return error.exit_code
    results = Results(given.out / "steps", same)
    for name, step in STEPS.items():
        if not results.is_missing(name):
            continue
        print(f"-- {name}", flush=True)
        start = time.monotonic()
        try:
            found = step(bench)
        except (Exception, SystemExit) as error:
            traceback.print_exc(file=sys.stdout)
            found = {"error": str(error)}
        results.note(name, found, time.monotonic() - start)
        (given.out / "cuda.json").write_text(json.dumps(results.assembled(), indent=1) + "\n")
    return int(any(results.is_missing(name) for name in STEPS))


class Results:
    """What each step found: a file for each, of one device and one version of all that matters."""

    def __init__(self, folder: Path, same: dict[str, Any]) -> None:
        self._folder = folder
        self._same = same
        folder.mkdir(parents=True, exist_ok=True)

    def note(self, name: str, found: Any, took_s: float) -> None:
        """Write what a step found."""
        text = json.dumps(self._same | {"found": found, "took_s": round(took_s)}, indent=1)
        partial = self._folder / f"{name}.partial"
        partial.write_text(text + "\n")
        partial.rename(self._folder / f"{name}.json")

    def is_missing(self, name: str) -> bool:
        """Whether a step has yet to run, failed, or is to go on."""
        known = self._read(name)
        if known is None or "error" in known["found"]:
            return True
        return name in NETWORKS and not networks.is_complete(known["found"])

    def assembled(self) -> dict[str, Any]:
        """Return what there is, in one dictionary; networks in one of their own."""
        result = dict(self._same)
        for name in STEPS:
            known = self._read(name)
            if known is None:
                continue
            place = result.setdefault("networks", {}) if name in NETWORKS else result
            place[name] = known["found"]
            result.setdefault("took_s", {})[name] = known["took_s"]
        return result

    def _read(self, name: str) -> dict[str, Any] | None:
        file = self._folder / f"{name}.json"
        if not file.exists():
            return None
        known: dict[str, Any] = json.loads(file.read_text())
        return known if known.items() >= self._same.items() else None


if __name__ == "__main__":
    sys.exit(main())
