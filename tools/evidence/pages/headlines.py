"""The headline results: what README and the changelog show of all pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tools.evidence.beside_engines import ENGINES, BesideEngines
from tools.evidence.files import read_result
from tools.evidence.goals import judged
from tools.evidence.markdown import in_words, share, table, times
from tools.evidence.means import geometric_mean
from tools.evidence.pages.ceiling import share_of_ceiling
from tools.evidence.pages.ranking import BUNDLES, manifest
from tools.evidence.peers_summary import PEERS
from tools.evidence.protocol import HEAVY_TRIALS, LONG_TRIALS, NETWORK_GENERATED, NETWORK_TRIALS
from tools.evidence.provenance import machine, provenance

Row = Mapping[str, Any]


class Headline(NamedTuple):
    """A row of the table: a figure, what it is compared with, where, and its page."""

    what: str
    figure: str
    beside: str
    goal: str
    machines: Iterable[str]
    page: str


def headlines() -> list[Headline]:
    """Return all of what was measured, goals that were missed among them."""
    search = read_result("search")
    return [
        *(_networks(search) if search.get("networks") else ()),
        *(_heavy(search) if search.get("heavy") else ()),
        *_peers(read_result("peers").get("pooled", ())),
        *_without_a_bundle(search.get("ablation", ())),
        *_engines(read_result("engines").get("networks", ())),
        *_ranking(),
        *_generated(read_result("generate")),
        *_fuzz(read_result("fuzz")),
    ]


def _networks(search: Row) -> list[Headline]:
    return [
        Headline(
            "Throughput of whole networks after equal trials",
            times(search["pooled"]["networks"]["latency_ratio"]),
            f"stock MetaSchedule, {NETWORK_TRIALS} trials a task",
            "",
            _on(search["networks_by_hardware"]),
            "search",
        )
    ]


def _heavy(search: Row) -> list[Headline]:
    return [
        Headline(
            "Trials until single tasks are as fast as stock's at its end",
            f"{share(search['pooled']['heavy']['trials_ratio'])} of stock's",
            f"stock MetaSchedule, {HEAVY_TRIALS} trials",
            "",
            _on(search["heavy_by_hardware"]),
            "search",
        ),
        _overhead(search["heavy_by_hardware"]),
    ]


def _peers(pooled: Iterable[Row]) -> list[Headline]:
    goals, races = provenance().goals.races, read_result("peers").get("races", ())
    found = []
    for row in pooled:
        if row["kind"] != "heavy":
            continue
        which, figure = (row["against"], row["kind"]), row["latency_ratio"]
        least = goals[row["against"]].latency_ratio
        found.append(
            Headline(
                "Throughput of single tasks after equal trials",
                times(figure),
                f"{PEERS[row['against']]}, {HEAVY_TRIALS} trials",
                judged(f"at least {least:g}", figure >= least) if least else "",
                sorted({r["hardware"] for r in races if (r["against"], r["kind"]) == which}),
                "peers",
            )
        )
    return found


def _on(rows: Iterable[Row]) -> list[str]:
    return [row["hardware"] for row in rows]


def _overhead(rows: list[Row]) -> Headline:
    """Of the run that is the closest to the search as it is."""
    runs = [run for run in provenance().benchmarks["search"].runs if run.part == "single tasks"]
    newest = min(runs, key=lambda run: len(run.since))
    (row,) = (row for row in rows if row["hardware"] == newest.machine)
    goal, figure = provenance().goals.search_overhead_ratio, row["overhead_ratio"]
    return Headline(
        "Seconds a trial beside building and running, single tasks",
        f"{share(figure)} of stock's",
        "stock MetaSchedule",
        judged(f"at most {goal}", figure <= goal),
        [row["hardware"]],
        "search",
    )


def _without_a_bundle(rows: Iterable[Row]) -> list[Headline]:
    return [
        Headline(
            "Throughput of single tasks without a bundle",
            times(row["throughput"]),
            "the same search with a bundle",
            "",
            row["hardware"],
            "ablation",
        )
        for row in rows
        if row["on"] == "tasks, cold" and row["version"] == "cold"
    ]


def _engines(networks: Iterable[Row]) -> list[Headline]:
    rows = [BesideEngines.model_validate(row) for row in networks]
    goals = provenance().goals
    found = []
    for engine, title in ENGINES.items():
        ratios = {row.case: ratio for row in rows if (ratio := row.ratio(engine)) is not None}
        if not ratios:
            continue
        mean = geometric_mean(list(ratios.values()))
        names = {name for name, *_ in ratios}
        goal = ""
        if engine in goals.faster_than:
            least = goals.faster_than[engine]
            goal = judged(f"at least {least:g}", mean >= least)
        elif engine == "pytorch":
            slower = sum(ratio < 1 for ratio in ratios.values())
            most = goals.slower_than_pytorch
            goal = judged(f"{most or 'none'} slower", slower <= most)
        found.append(
            Headline(
                f"Throughput of {len(names)} tuned networks, all layouts",
                times(mean),
                title,
                goal,
                sorted({row.hardware for row in rows}),
                "engines",
            )
        )
    return found


def _ranking() -> list[Headline]:
    metrics = manifest(BUNDLES[0])["metrics"]
    goal = provenance().goals.ranking_top1
    first = Headline(
        "Throughput of the first program of a ranking, held-out networks",
        times(metrics["top1"]),
        f"the best program measured (a random one: {times(metrics['random_top1'])})",
        judged(f"at least {goal}", metrics["top1"] >= goal),
        [metrics["hardware"]],
        "ranking",
    )
    part = share_of_ceiling(metrics, "top1")
    if part is None:
        return [first]
    beside = "what a perfect ranking gets, as two measurements of a program differ"
    what = "The same as a share of the ceiling"
    return [first, first._replace(what=what, figure=times(part), beside=beside, goal="")]


def _generated(result: Row) -> list[Headline]:
    if not result.get("long"):
        return []
    figure = result["pooled"]["generate"]["1000"][str(NETWORK_GENERATED)]
    goal = provenance().goals.generated_of_long
    return [
        Headline(
            f"Throughput of the best of {NETWORK_GENERATED} generated programs, single tasks",
            times(figure),
            f"stock MetaSchedule, {LONG_TRIALS:,} trials",
            judged(f"at least {goal:g}", figure >= goal),
            sorted({row["hardware"] for row in result["long"]}),
            "generator",
        )
    ]


def _fuzz(result: Row) -> list[Headline]:
    if not result:
        return []
    inputs = sum(found["inputs"] for found in result.values())
    fine = sum(sum(found["outcomes"].get(o, 0) for o in _FINE) for found in result.values())
    return [
        Headline(
            "Damaged files that end in a crash, a hang or an unclear error",
            f"{inputs - fine:,}",
            f"{inputs:,} damaged files",
            judged("none", inputs == fine),
            [],
            "fuzz",
        )
    ]


_FINE = ("accepted", "refused")


def readme_block() -> str:
    """Return what the README shows."""
    return (
        f"{headline_table('docs/results/')}\n\n{_age()}; [the index of "
        "results](docs/results/index.md) says what has changed since, and where everything was "
        "measured."
    )


def _age() -> str:
    """Return how much of the evidence is older than costlib is now."""
    known = provenance()
    runs = known.runs()
    older = sum(map(known.is_older, runs))
    if older:
        return f"{older} of the {len(runs)} runs behind the pages were made with older code"
    return "Nothing of this is known to be older than costlib is now"


def headline_list() -> str:
    """Return a line a figure; without links, as the changelog is shown in two places."""
    return "\n".join(
        f"- {row.what}: {row.figure}; compared with {row.beside}"
        + (f"; goal {row.goal}" if row.goal else "")
        + (f" ({where})" if (where := _machines(row)) else "")
        for row in headlines()
    )


def _machines(row: Headline) -> str:
    return in_words([machine(hardware) for hardware in row.machines])


def headline_table(folder: str = "") -> str:
    """Return the table; its links lead to pages in a folder."""
    return table(
        ["what", "result", "compared with", "goal", "machine", "more"],
        [
            [
                row.what,
                row.figure,
                row.beside,
                row.goal,
                _machines(row) or "any",
                f"[{row.page}]({folder}{row.page}.md)",
            ]
            for row in headlines()
        ],
    )
