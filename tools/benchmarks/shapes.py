"""One file for all shapes of a range against a network that is tuned for each shape alone.

    python -m tools.benchmarks.shapes bert_tiny --dim sequence=16:128 --shapes 50

The range is tuned first, then each of so many random shapes with 16 trials a task; PyTorch runs
beside both. Runs are kept in ``--runs``, what was measured in ``--results``: what is there is not
tuned or measured again. Padding inputs and cropping outputs count for the file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import save_arrays
from costlib.files import write_json
from costlib.hardware import Hardware
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.result import RESULT, TuneResult, read_result
from costlib.tuning.tensors import cropped_to
from costlib.tuning.tune import tune
from costlib.workloads import extract_tasks
from costlib.workloads.ranges.dimension import parse_dims
from costlib.workloads.ranges.symbolic import Symbolic, symbolic
from costlib.workloads.ranges.table import ShapeTable, padded_to
from tools.evidence.files import REPOSITORY
from tools.evidence.means import geometric_mean

RESULTS = REPOSITORY / "tools" / "results" / "shapes.json"
TURNS = 7
TURN_SECS = 0.3


def main() -> None:
    """Measure the shapes that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", help="of the zoo")
    parser.add_argument("--dim", action="append", required=True)
    parser.add_argument("--shapes", type=int, default=50)
    parser.add_argument("--trials", type=int, default=128, help="of the range")
    parser.add_argument("--per-task", type=int, default=16, help="of a shape alone")
    parser.add_argument("--runs", type=Path, default=Path("runs/shapes"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    network = symbolic(given.network, parse_dims(given.dim))
    assert network is not None
    in_range = tuned(given.network, given.runs / "range", given.trials, dim=parse_dims(given.dim))
    library = Path(in_range.ranges[0].library)
    found = json.loads(given.results.read_text()) if given.results.exists() else {}
    found |= {"network": given.network, "dims": given.dim, "trials": in_range.trials}
    rows: list[dict[str, Any]] = found.setdefault("shapes", [])
    for sizes in shapes_of(network, given.shapes):
        named = {dim.name: n for dim, n in zip(network.dims, sizes, strict=True)}
        if named in [row["sizes"] for row in rows]:
            continue
        alone = variant(given.network, named)
        trials = given.per_task * len(extract_tasks(alone))
        by_itself = tuned(alone, given.runs / alone, trials)
        rows.append({"sizes": named, **timed(network, sizes, library, by_itself)})
        write_json(given.results, found)
        print(rows[-1], flush=True)
    ratios = [row["alone_s"] / (row["range_s"] + row["handling_s"]) for row in rows]
    print(f"{geometric_mean(ratios):.3f} of the speed of networks tuned for each shape alone")


def tuned(source: str, out: Path, trials: int, **settings: Any) -> TuneResult:
    """Tune a network, unless that was done."""
    if (out / RESULT).exists():
        return read_result(out)
    return tune(source, out=out, trials=trials, resume=out.exists(), **settings)


def variant(name: str, sizes: dict[str, int]) -> str:
    """Name the network of the zoo that has one shape alone."""
    return f"{name}@{'-'.join(f'{dim[0]}{extent}' for dim, extent in sizes.items())}"


def shapes_of(network: Symbolic, count: int) -> list[tuple[int, ...]]:
    """Draw so many shapes, the same each time."""
    rng = np.random.default_rng(0)
    return [
        tuple(int(rng.integers(dim.low, dim.high, endpoint=True)) for dim in network.dims)
        for _ in range(count)
    ]


def timed(
    network: Symbolic, sizes: Sequence[int], library: Path, alone: TuneResult
) -> dict[str, Any]:
    """Time a shape in the file, by itself and in PyTorch, in turns."""
    table = CompiledNetwork.load(library).shapes
    assert table is not None
    point = table.serving(sizes)
    inputs = network.example(sizes)
    larger = _padded(table, inputs, point.sizes)
    call = network.reference(sizes).timed(inputs)
    turns: dict[str, list[float]] = {"range_s": [], "alone_s": [], "pytorch_s": []}
    with ScratchFolder() as folder, Measurer(Hardware.local()) as measurer:
        save_arrays(folder / "larger", [*larger, *table.true_extents(sizes)])
        save_arrays(folder / "inputs", inputs)
        jobs = {
            "range_s": (library, point.function, folder / "larger"),
            "alone_s": (Path(alone.networks[0].library), "main", folder / "inputs"),
        }
        for _ in range(TURNS):
            for name, (path, function, file) in jobs.items():
                job = NetworkJob(
                    path=str(path.resolve()), function=function, inputs=str(file), secs=TURN_SECS
                )
                timing = measurer.run_job(job).timing
                assert timing is not None, "it ran a moment ago"
                turns[name].append(timing.run_secs[0])
            turns["pytorch_s"].append(fastest_call(call, TURN_SECS))
    specs = network.signature(point.sizes).outputs
    outputs = [np.zeros(spec.shape, spec.dtype) for spec in specs]
    handling_s = fastest_call(_handling(table, inputs, outputs, sizes), TURN_SECS)
    medians = {name: float(np.median(secs)) for name, secs in turns.items()}
    return {"served_by": table.named(point.sizes), "handling_s": handling_s, **medians}


def _padded(
    table: ShapeTable, inputs: Sequence[np.ndarray], sizes: Sequence[int]
) -> list[np.ndarray]:
    return [padded_to(a, s) for a, s in zip(inputs, table.input_shapes(sizes), strict=True)]


def _handling(
    table: ShapeTable,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    sizes: Sequence[int],
) -> Callable[[], None]:
    """What a call takes beside the function: choosing it, padding and cropping."""

    def handle() -> None:
        _padded(table, inputs, table.serving(sizes).sizes)
        for output, shape in zip(outputs, table.output_shapes(sizes), strict=True):
            cropped_to(output, shape)

    return handle


if __name__ == "__main__":
    main()
