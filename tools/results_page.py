"""Write the page of results from the result files: no figure on it is typed by hand.

python tools/results_page.py            # writes tools/results/README.md
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import leaderboard

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
        _table(
            ["share", *(f"{part.replace('_', ' ')} ({m})" for part in parts for m in metrics)],
            [
                [f"{float(share):.1%}", *(curves[p][share][m] for p in parts for m in metrics)]
                for share in curves["tasks"]
            ],
        ),
        "**Operators**, those with the slowest first choices first:",
        _table(
            ["operator", "tasks", "first choice / best", "best of five / best", "pairs"],
            [list(row.values()) for row in result["operators"]],
        ),
        "**Features.** The model without a group of them:",
        _table(
            ["features", *metrics],
            [[name, *(row[m] for m in metrics)] for name, row in result["feature_groups"].items()],
        ),
        "**Calibration** of the ensemble's uncertainty on the held-out networks: the share of "
        "errors within the interval that should hold a share of them:",
        _table(
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
        _table(
            ["way", "a second", "of stock, from traces"],
            [[name, rate, relative[name]] for name, rate in scoring["programs_per_second"].items()],
        ),
        "Training, each in a process of its own:",
        _table(["data", "model", "programs a second", "seconds", "MiB above the data"], training),
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
            _table(["trained", "top-1", "pairs"], rows),
        ]
    return parts


def _search(result: dict[str, Any]) -> list[str]:
    parts = [
        "## The search against stock MetaSchedule",
        "`python tools/bench_search.py`: both sides take turns on one machine, with the same "
        "builder, runner and repeats, latencies corrected by the canaries; what was the best of "
        "its side for a while is measured again in the end, in turns, and that counts. *Trials* "
        "and *time*: after what costlib was as fast as stock at its end, to within 1 %, and stayed "
        "so, as a share of stock's; a race not won counts as all that was spent. *Won*: the share "
        "of races in which it got there. "
        "*Faster*: stock's last latency divided by costlib's after as many trials; *at 16*: after "
        "16 trials a task. *Overhead*: seconds a trial beside building and running, relative to "
        "stock's. "
        "Geometric means over the seeds.",
    ]
    kinds = (
        ("heavy", "heavy", "The two heaviest tasks of each held-out network, 200 trials each"),
        ("networks", "network", "Whole networks, 64 trials a task on average"),
        ("long", "long", "The heaviest tasks, stock with 1,000 trials, costlib with 200"),
    )
    for key, kind, title in kinds:
        if not result.get(key):
            continue
        rows = [*result[key], {"name": "all", "seeds": [], **result[f"pooled_{key}"]}]
        parts += [
            f"**{title}.**",
            f"![throughput by trials](search_{kind}.png)",
            _table(
                ["", "seeds", "machine", "won", "trials", "time", "faster", "at 16", "overhead"],
                [[row["name"], *_seeds(row), *(row[f] for f in _SEARCH_FIGURES)] for row in rows],
            ),
        ]
    if result.get("ablation"):
        figures = ("cases", "throughput", "throughput_along_the_way")
        rows = [
            [row["version"], *(row[figure] for figure in figures), *row["range"], row["overhead"]]
            for row in result["ablation"]
        ]
        parts += [
            "**Part by part** (`ablation`): races of the heavy tasks, 48 trials for each "
            "version. *Plain* is Ansor's loop with the bundle's exact model alone; *cold* has no "
            "bundle; *thrift* is half of the population and the generations, and one survivor for "
            "each trial. Throughput of the best program relative to the full search's, after all "
            "trials and as the mean along the way, geometric means and the range of the former; "
            "seconds beside building and running, relative to its:",
            _table(
                [
                    "version",
                    "races",
                    "at the end",
                    "along the way",
                    "lowest",
                    "highest",
                    "overhead",
                ],
                rows,
            ),
        ]
    return parts


def _seeds(row: dict[str, Any]) -> list[Any]:
    """Return how many seeds there are, and what they were measured on."""
    return [len(row["seeds"]) or "", ", ".join(sorted({seed["hardware"] for seed in row["seeds"]}))]


_SEARCH_FIGURES = (
    "reached", "trials_ratio", "time_ratio", "latency_ratio", "latency_ratio_at_16",
    "overhead_ratio",
)  # fmt: skip


def _generate(result: dict[str, Any]) -> list[str]:
    pooled = result["pooled"]
    counts = ("1", "4", "16", "32")
    parts = [
        "## Generating instead of searching",
        "`python tools/bench_generate.py`, on the two heaviest tasks of each held-out network: "
        "throughput of the best of so many measured programs relative to stock MetaSchedule's "
        "after 64 trials of the same race, after 200 by what its recorded curves gain beyond "
        "64, and after 1,000 in races of their own; geometric means. *Written* and *sampled*: the "
        "first by the bundle's models of 1,024 that the generator wrote, or that were drawn at "
        "random.",
    ]
    for trials in ("64", "200", "1000"):
        rows = [
            [arm, *(found[trials].get(count, "") for count in counts)]
            for arm, found in pooled.items()
            if found[trials]
        ]
        if rows:
            races = sum(trials in case["written"] for case in result["cases"] + result["long"])
            title = f"Stock with {trials} trials (races: {races}):"
            parts += [title, _table(["programs of", *counts], rows)]
    speed = {
        way: [case["programs_per_s"][way] for case in result["cases"]]
        for way in ("written", "sampled")
    }
    parts.append(
        f"{result['valid']:.2%} of what is written passes the postprocessors. Programs a second, "
        "lowered and passed (lowest and highest of the tasks): written "
        f"{min(speed['written'])} to {max(speed['written'])}, sampled by TVM "
        f"{min(speed['sampled'])} to {max(speed['sampled'])}."
    )
    return parts


def _reach(result: dict[str, Any]) -> list[str]:
    by_name = sorted(result["by_name"].items(), key=lambda entry: entry[1])
    return [
        "## How far the generator gets without measuring",
        f"`python tools/generator_reach.py`: on {len(result['tasks'])} invented tasks that it was "
        "not trained on, how far the programs that it writes lie on the way from random (0) to "
        "those that evolved under the model of schedules that taught it (1), by that model's "
        f"scores: {result['mean']} on the average, median {result['median']}. By task:",
        _table(["tasks named", "reach"], by_name),
    ]


def _torch(result: dict[str, Any]) -> list[str]:
    lines = [
        "## Tuned networks against PyTorch",
        "`python tools/bench_torch.py`: whole networks, tuned in all layouts, beside PyTorch "
        "(oneDNN) and `torch.compile` on the same two threads, in turns. Where one is slower than "
        "PyTorch, its slowest tasks are named.",
    ]
    for machine in result["machines"]:
        mean, networks = machine["geometric_mean"], machine["networks"]
        lines += [
            f"`{machine['hardware']}`: {mean['pytorch']} times as fast as PyTorch and "
            f"{mean['compiled']} times as fast as `torch.compile` (geometric means); "
            f"{machine['not_slower_than_pytorch']} of {len(networks)} are not slower than PyTorch.",
            _table(
                ["network", "layout", "trials", "tuned, ms", "PyTorch, ms", "compiled, ms",
                 "of PyTorch", "of compiled", "slowest tasks"],
                [_beside_torch(row) for row in networks],
            ),
        ]  # fmt: skip
    return lines


def _beside_torch(row: dict[str, Any]) -> list[Any]:
    slowest = ", ".join(
        f"{task['task']} ({task['ms']} ms, {task['gflops_per_s']} GFLOP/s)"
        for task in row["slowest_tasks"][:2]
    )
    return [
        row["network"],
        row["version"].partition("+")[2] or "as exported",
        row["trials"],
        row["tuned_ms"],
        row["pytorch_ms"],
        row.get("compiled_ms", ""),
        row["speedup"]["pytorch"],
        row["speedup"].get("compiled", ""),
        slowest if row["speedup"]["pytorch"] < 1 else "",
    ]


def _vector_math(result: dict[str, Any]) -> list[str]:
    return [
        "## Elementary functions",
        f"`python tools/bench_vector_math.py`, `{result['mcpu']}`, one core: nanoseconds a number "
        "(range over the turns) and the largest relative error.",
        _table(
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
        _table(["reader of", "inputs", "accepted", "refused", "else"], rows),
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
        _table(["stage", "records", "and", "seconds", "and", "ms a record"], measured),
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
        _table(
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
    "search": _search,
    "generate": _generate,
    "generator_reach": _reach,
    "torch": _torch,
    "scale": _scale,
    "vector_math": _vector_math,
    "fuzz": _fuzz,
}


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [f"{cell:,}" if isinstance(cell, (int, float)) else str(cell) for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
