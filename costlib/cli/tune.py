"""``costlib tune``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import Cores, Mcpu, Seed, local_hardware
from costlib.cli.output import Json, milliseconds, print_json, print_table

if TYPE_CHECKING:
    from costlib.search.result import TuneResult


def tune(
    source: Annotated[
        str, typer.Argument(help="A network, an operator (quoted) or a file, as for `tasks`.")
    ],
    out: Annotated[Path, typer.Option(help="The run's folder.")],
    trials: Annotated[int, typer.Option(help="Programs to measure.")] = 64,
    pretrained: Annotated[
        str, typer.Option(help="The bundle: a name, a folder, or an address such as hf://me/mine.")
    ] = "cpu-gbdt",
    seed: Seed = 0,
    mcpu: Mcpu = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Tune a network with a pretrained cost model and compare it with PyTorch.

    Writes the compiled network, a MetaSchedule database, the result and a picture of the curve.

    Example: `costlib tune bert_tiny --trials 64 --out runs/bert_tiny`
    """
    from costlib.cli.live import LiveTuning
    from costlib.report.curve import draw_curve
    from costlib.search.tune import tune as run

    with LiveTuning() as live:
        result = run(
            source,
            out=out,
            trials=trials,
            bundle=pretrained,
            hardware=local_hardware(mcpu, cores),
            seed=seed,
            on_progress=live.show,
        )
    picture = draw_curve(result, out / "curve.png")
    if as_json:
        print_json(result.model_dump(mode="json") | {"picture": str(picture)})
    else:
        _print_result(result, picture)


def _print_result(result: TuneResult, picture: Path) -> None:
    rows = [
        (
            task.name,
            task.weight,
            task.trials,
            milliseconds(task.latency_before_s),
            milliseconds(task.latency_after_s),
            f"{task.gflops_per_s:.1f}" if task.gflops_per_s else "-",
        )
        for task in result.tasks
    ]
    columns = ["task", ">weight", ">trials", ">before", ">after", ">GFLOP/s"]
    print_table(f"{result.network} on {result.hardware_id}", columns, rows)
    lines = [
        ("whole network, untuned", milliseconds(result.latency_before_s)),
        ("whole network, tuned", milliseconds(result.latency_after_s)),
        ("PyTorch", milliseconds(result.pytorch_latency_s)),
        ("largest difference of outputs", f"{result.max_abs_error:.2e}"),
        ("largest output", f"{result.max_abs_output:.2e}"),
        ("trials", str(result.trials)),
        ("elapsed", f"{result.elapsed_s:.0f} s"),
        ("compiled network", result.library),
        ("tuning curve", str(picture)),
    ]
    print_table("result", ["", ""], lines)
