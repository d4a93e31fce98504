"""The sections of ``tools/results/README.md`` on searching, writing and tuned networks."""

from __future__ import annotations

from typing import Any

from markdown_table import table


def search(result: dict[str, Any]) -> list[str]:
    """The races against stock MetaSchedule, and the ablation."""
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
        "stock's; what costlib proposes while it builds slows that down a little and does not "
        "count. *Seconds*: all of a trial, relative to stock's. "
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
        rows = [*result[key], {"name": "all", "seeds": [], **result["pooled"][key]}]
        parts += [
            f"**{title}.**",
            f"![throughput by trials](search_{kind}.png)",
            table(
                ["", "seeds", "machine", *_SEARCH_COLUMNS],
                [[row["name"], *_seeds(row), *(row[f] for f in _SEARCH_FIGURES)] for row in rows],
            ),
            table(
                ["all races on", "races", *_SEARCH_COLUMNS],
                [
                    [row["hardware"], row["races"], *(row[f] for f in _SEARCH_FIGURES)]
                    for row in result[f"{key}_by_hardware"]
                ],
            ),
        ]
    if result.get("ablation"):
        figures = ("cases", "throughput", "throughput_along_the_way")
        rows = [
            [
                row["version"],
                row["on"],
                *(row[figure] for figure in figures),
                *row["range"],
                *(row.get(figure, "") for figure in ("gain", "gain_error")),
                row["overhead"],
                ", ".join(row["hardware"]),
            ]
            for row in result["ablation"]
        ]
        parts += [
            "**Part by part** (`ablation`): races of the heavy tasks, 48 trials for each "
            "version (*on* tasks), or of whole networks, 16 trials a task (*on* networks). "
            "*Plain* is Ansor's loop with the bundle's exact model alone; *full* has all parts but "
            "those that a version adds to it, mutation directions among them, which are off by "
            "default since; *cold* is full without a bundle, *cold-plain* the plain loop without "
            "one, which learns from the run. "
            "Throughput relative to the full search's, after all trials and as the mean "
            "along the way, geometric means and the range of the former. *Gain*: the throughput "
            "with the part relative to that of the same version without it, of a full search to "
            "that of its plain loop, and the standard error of its logarithm. *Overhead*: seconds "
            "beside building and running, relative to the full search's.",
            table(
                [
                    "version",
                    "on",
                    "races",
                    "at the end",
                    "along the way",
                    "lowest",
                    "highest",
                    "gain",
                    "error",
                    "overhead",
                    "machine",
                ],
                rows,
            ),
        ]
    return parts


def _seeds(row: dict[str, Any]) -> list[Any]:
    """Return how many seeds there are, and what they were measured on."""
    return [len(row["seeds"]) or "", ", ".join(sorted({seed["hardware"] for seed in row["seeds"]}))]


_SEARCH_COLUMNS = ("won", "trials", "time", "faster", "at 16", "overhead", "seconds")
_SEARCH_FIGURES = (
    "reached", "trials_ratio", "time_ratio", "latency_ratio", "latency_ratio_at_16",
    "overhead_ratio", "seconds_ratio",
)  # fmt: skip


def generate(result: dict[str, Any]) -> list[str]:
    """Written programs against searched ones."""
    pooled = result["pooled"]
    counts = ("1", "4", "16", "32")
    parts = [
        "## Generating instead of searching",
        "`python tools/bench_generate.py`, on the two heaviest tasks of each held-out network: "
        "throughput of the best of so many measured programs relative to stock MetaSchedule's "
        "after 64 trials of the same race, after 200 by what its recorded curves gain beyond "
        "64, and after 1,000 in races of their own; geometric means. *Written*, *sampled*, "
        "*generate*: the first by the bundle's models of 1,024 that the generator wrote, that were "
        "drawn at random, or of both together (as `costlib generate` picks them).",
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
            parts += [title, table(["programs of", *counts], rows)]
    if result["networks"]:
        rows = [
            [
                row["network"],
                row["seed"],
                *(row["generate"].get(n, "") for n in counts[:3]),
                row["hardware"],
            ]
            for row in result["networks"]
        ]
        parts += [
            "Whole networks, so many generated programs of each task, relative to stock with 64 "
            "trials a task in the same race:",
            table(["network", "seed", *counts[:3], "machine"], rows),
        ]
    rows = [
        [
            count,
            found["throughput"],
            found["standard_error"],
            f"{found['ahead']} of {len(result['cases'])}",
        ]
        for count, found in result["generator_in_search"].items()
    ]
    parts += [
        "The search with the generator relative to the search without, in these races:",
        table(["programs measured", "throughput", "standard error of its log", "ahead"], rows),
    ]
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


def reach(result: dict[str, Any]) -> list[str]:
    """How far the generator gets on tasks that it has not seen."""
    by_name = sorted(result["by_name"].items(), key=lambda entry: entry[1])
    return [
        "## How far the generator gets without measuring",
        f"`python tools/generator_reach.py`: on {len(result['tasks'])} invented tasks that it was "
        "not trained on, how far the programs that it writes lie on the way from random (0) to "
        "those that evolved under the model of schedules that taught it (1), by that model's "
        f"scores: {result['mean']} on the average, median {result['median']}. By task:",
        table(["tasks named", "reach"], by_name),
    ]


def torch(result: dict[str, Any]) -> list[str]:
    """Tuned networks beside PyTorch."""
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
            table(
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
