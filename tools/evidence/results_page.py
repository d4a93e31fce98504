"""Write the page of results from the result files: no figure on it is typed by hand.

python tools/results_page.py            # writes tools/results/README.md
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import leaderboard
import search_sections
from markdown_table import table

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Write a section for each result file that is there."""
    parts = ["# Results", _INTRODUCTION]
    for name, section in _SECTIONS.items():
        file = RESULTS / f"{name}.json"
        if file.exists():
            parts += section(json.loads(file.read_text()))
    (RESULTS / "README.md").write_text("\n\n".join(parts) + "\n")


_INTRODUCTION = """\
Written by `python tools/results_page.py` from the files beside it. Shares are of the best measured
throughput of a task: *top-k* is what the best of the first k programs of a ranking reaches, *pairs*
how many pairs of a task's programs are in order."""


def _leaderboard(table: dict[str, Any]) -> list[str]:
    data = table["data"]
    sure = [
        f"{name} {entry['mean']:.3f} ({low:.3f} to {high:.3f})"
        for name, summary in table["summary"].items()
        if (entry := summary["top1"]).get("confidence_95")
        for low, high in [entry["confidence_95"]]
        if high > low
    ]
    seeds = ", ".join(f"{name}: {len(rows)}" for name, rows in table["models"].items())
    return [
        "## Cost models on the held-out networks",
        f"`python tools/leaderboard.py`: trained on the {data['programs']:,} training programs of "
        f"`datasets/{data['dataset']}` (*all hardware*), or on those of `{data['hardware']}`; "
        f"judged on {data['held_out_programs']:,} programs of the held-out networks there. Tasks "
        "are weighted by their calls and their time, networks alike; *pooled* counts all tasks "
        "once.",
        leaderboard.markdown(table),
        f"Top-1 with its 95 % confidence interval over the seeds: {'; '.join(sure)}. A model "
        f"without an interval gives the same for each seed, or has one. Seeds: {seeds}.",
    ]


def _ranking(result: dict[str, Any]) -> list[str]:
    curves = result["learning_curves"]
    parts = ("tasks", "programs_per_task")
    metrics = ("top1", "top5", "pairwise_accuracy")
    return [
        "## Where the ranking goes wrong",
        f"`python tools/analyse_ranking.py`: the GBDT on {result['programs']:,} programs of "
        f"{result['tasks']} training tasks, by 4-fold cross-validation over the tasks.",
        "![learning curves and calibration](ranking.png)",
        "**Learning curves.** Top-1, top-5 and pairs with a share of the training data:",
        table(
            ["share", *(f"{part.replace('_', ' ')} ({m})" for part in parts for m in metrics)],
            [
                [f"{float(share):.1%}", *(curves[p][share][m] for p in parts for m in metrics)]
                for share in curves["tasks"]
            ],
        ),
        "**Operators**, those with the slowest first choices first:",
        table(
            ["operator", "tasks", "first choice / best", "best of five / best", "pairs"],
            [list(row.values()) for row in result["operators"]],
        ),
        "**Features.** The model without a group of them:",
        table(
            ["features", *metrics],
            [[name, *(row[m] for m in metrics)] for name, row in result["feature_groups"].items()],
        ),
        "**Calibration** of the ensemble's uncertainty on the held-out networks: the share of "
        "errors within the interval that should hold a share of them:",
        table(
            ["expected", *(f"{level:.0%}" for level in result["calibration"]["level"])],
            [["found", *(f"{share:.0%}" for share in result["calibration"]["covered"])]],
        ),
    ]


def _model_speed(result: dict[str, Any]) -> list[str]:
    scoring = result["scoring"]
    relative = scoring["relative_to_stock_from_traces"]
    training = [
        [size, model, row["programs_per_second"], row["seconds"], row["peak_mib_above_data"]]
        for size, rows in result["training"].items()
        for model, row in rows.items()
    ]
    return [
        "## Speed of models",
        f"`python tools/model_speed.py`, on {scoring['task']}. Candidates a second:",
        table(
            ["way", "a second", "of stock, from traces"],
            [[name, rate, relative[name]] for name, rate in scoring["programs_per_second"].items()],
        ),
        "Training, each in a process of its own:",
        table(["data", "model", "programs a second", "seconds", "MiB above the data"], training),
    ]


def _transfer(result: dict[str, Any]) -> list[str]:
    parts = [
        "## From one hardware to another",
        f"`python tools/transfer.py`: from `{result['from']}`, with {result['share']:.0%} of the "
        "other's records or all, by 4-fold cross-validation over tasks; mean and range over the "
        f"seeds ({', '.join(result['by_seed'])}).",
    ]
    for hardware_id, ways in result["to"].items():
        rows = [
            [name, *(_with_range(figure) for figure in way.values())]
            for name, way in ways.items()
            if isinstance(way, dict)
        ]
        parts += [
            f"To `{hardware_id}` ({ways['programs']:,} programs of {ways['tasks']} tasks):",
            table(["trained", "top-1", "pairs"], rows),
        ]
    return parts


def _vector_math(result: dict[str, Any]) -> list[str]:
    return [
        "## Elementary functions",
        f"`python tools/bench_vector_math.py`, `{result['mcpu']}`, one core: nanoseconds a number "
        "(range over the turns) and the largest relative error.",
        table(
            ["function", "TVM", "costlib", "error, TVM", "error, costlib"],
            [
                [
                    name,
                    *(f"{side['ns']} ({_listed(side['ns_range'])})" for side in sides.values()),
                    *(f"{side['relative_error']:.1e}" for side in sides.values()),
                ]
                for name, sides in result["functions"].items()
            ],
        ),
    ]


def _fuzz(result: dict[str, Any]) -> list[str]:
    rows = [
        [
            name,
            found["inputs"],
            found["outcomes"].get("accepted", 0),
            found["outcomes"].get("refused", 0),
            found["inputs"]
            - found["outcomes"].get("accepted", 0)
            - found["outcomes"].get("refused", 0),
        ]
        for name, found in result.items()
    ]
    return [
        "## Damaged files",
        "`python tools/fuzz.py`: small valid files, changed at random, read in a process with "
        "limits on time and memory. *Refused*: with one clear line. *Else*: crashes, hangs, other "
        "errors.",
        table(["reader of", "inputs", "accepted", "refused", "else"], rows),
    ]


def _scale(result: dict[str, Any]) -> list[str]:
    tenset, thousand = result["extrapolated"]["tenset"], result["extrapolated"]["fleet"]
    cluster, fleet = result["cluster"], result["fleet"]
    measured = [
        [name, *result[name]["records"], *result[name]["seconds"], result[name]["ms_per_record"]]
        for name in ("import", "features")
    ]
    return [
        "## Sizing",
        f"`python tools/scale.py`, on the {result['cores']} cores of `{result['hardware']}`.",
        "Measured at two sizes, importing on one core, features on all; the slope is what one "
        "record more takes:",
        table(["stage", "records", "and", "seconds", "and", "ms a record"], measured),
        f"Training {cluster['trees']} trees on {cluster['programs']:,} programs with two Dask "
        f"workers of one core each: {cluster['two_workers_speed']} times as fast as with one "
        f"(seconds with one: {_listed(cluster['seconds']['1'])}; with two: "
        f"{_listed(cluster['seconds']['2'])}).",
        f"A program of `{fleet['task']}`: {fleet['build_core_s']} s of a core to build; "
        f"{fleet['run_s']} s to run and time here, {fleet['run_on_device_s']} s on a device "
        f"behind a tracker on loopback (the link adds {fleet['link_s']} s); the client computes "
        f"{fleet['client_core_s']} s.",
        f"**Extrapolated** in a straight line, not measured. TenSet's {tenset['records']:,} "
        "records on this machine:",
        table(
            ["", ""],
            [
                ["import MetaSchedule logs", f"{tenset['import_h']} h"],
                ["compute features", f"{tenset['features_h']} h"],
                ["stream all of it once", f"{tenset['stream_h']} h"],
                [f"train {tenset['trees']} trees out of core", f"{tenset['train_h']} h"],
                ["memory while training", f"{tenset['train_peak_gib']} GiB"],
                ["disk, measurements and features", f"{tenset['disk_gib']} GiB"],
            ],
        ),
        f"{thousand['devices']:,} devices like this one run {thousand['programs_per_s']:,} "
        f"programs a second, TenSet's number in {thousand['tenset_h']} h; that takes "
        f"{thousand['builder_cores']:,} cores that build and {thousand['client_cores']:,} that "
        "talk to the devices.",
    ]


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(map(str, numbers))


def _with_range(figure: dict[str, Any]) -> str:
    lowest, highest = figure["range"]
    return f"{figure['mean']:.3f} ({lowest:.3f} to {highest:.3f})"


_SECTIONS = {
    "leaderboard": _leaderboard,
    "ranking": _ranking,
    "model_speed": _model_speed,
    "transfer": _transfer,
    "search": search_sections.search,
    "generate": search_sections.generate,
    "generator_reach": search_sections.reach,
    "torch": search_sections.torch,
    "scale": _scale,
    "vector_math": _vector_math,
    "fuzz": _fuzz,
}


if __name__ == "__main__":
    main()
