"""Where the tables of a page were measured, in words; and which tables do not say it.

Most pages have runs of one machine and one commit, which their last section names. On the others
each section with a table begins with a line of :func:`origin`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tools.evidence.provenance import HEADING, Provenance, Run, provenance

_AND, _ALONE = " and ", " alone"
_ORIGIN = re.compile(r"^\*Measured: (.+)\.\*$", re.MULTILINE)
_TABLE = re.compile(r"^\| ?-{3}", re.MULTILINE)
_SECTION = re.compile(r"^(?=#{2,} )", re.MULTILINE)


def origin(benchmark: str, *parts: str, hardware: str | None = None) -> str:
    """Return the line that says where what a section shows was measured.

    Parameters
    ----------
    benchmark, parts
        What it shows; by default, all parts of the benchmark.
    hardware
        The machine that all of it was measured on, if it leaves out the others.
    """
    found = provenance().benchmarks.get(benchmark)
    places: dict[str, dict[str, None]] = {}
    for run in found.runs if found else ():
        if (not parts or run.part in parts) and hardware in (None, run.machine):
            places.setdefault(run.part, {})[run.where] = None
    alone = "" if hardware is None else _ALONE
    words = [f"{part}: {_AND.join(where)}{alone}" for part, where in places.items()]
    return f"*Measured: {'; '.join(words)}.*"


def unnamed(text: str, page: str, known: Provenance) -> list[str]:
    """Return the tables of a page that may mix machines or commits which they do not name.

    Parameters
    ----------
    text
        The page in Markdown.
    page
        Its name.
    known
        All that was measured.

    Returns
    -------
    list of str
        A line for each problem, with the heading of its section.
    """
    lines = {heading: _ORIGIN.findall(section) for heading, section in _with_tables(text)}
    named = [
        (heading, *words.rpartition(": ")[::2])
        for heading, found in lines.items()
        for line in found
        for words in line.split("; ")
    ]
    if not lines:
        return []
    runs = known.runs(page)
    shown = [run for run in known.runs() if run.part in {part for _, part, _ in named}]
    if len(_places([*runs, *shown])) < 2:
        return []
    silent = [heading for heading, found in lines.items() if not found]
    missing = dict.fromkeys(run.part for run in runs if run not in shown)
    return [
        *(f"{heading}: a table, and no word of where it was measured" for heading in silent),
        *(
            f"{heading}: {fault}"
            for heading, part, places in named
            for fault in _faults(part, places.split(_AND), shown)
        ),
        *(f"{part}: no table says that it shows this" for part in missing),
    ]


def _with_tables(text: str) -> list[tuple[str, str]]:
    """Return the headings and texts of sections with tables of figures."""
    sections = [(one.strip().partition("\n")[0], one) for one in _SECTION.split(text)]
    return [(head, one) for head, one in sections if head != HEADING and _TABLE.search(one)]


def _places(runs: Sequence[Run]) -> set[tuple[str | None, str | None]]:
    """Return machines with commits; what is the same anywhere was measured on no other machine."""
    machines = [run.machine for run in runs if run.machine]
    anywhere = machines[0] if machines else None
    return {(run.machine or anywhere, run.commit) for run in runs}


def _faults(part: str, named: Sequence[str], shown: Sequence[Run]) -> list[str]:
    """Return what a line about a part of a benchmark leaves out."""
    runs = [run for run in shown if run.part == part]
    if not runs:
        return [f"nothing was measured as '{part}'"]
    if named[-1].endswith(_ALONE):
        left = {place.removesuffix(_ALONE) for place in named} - {run.where for run in runs}
        return [f"{part} was not measured on {place}" for place in sorted(left)]
    return [f"{part} was measured on {run.where}, too" for run in runs if run.where not in named]
