"""Which architectures import, and compute what their originals compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import in_words, percent, table
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured

Record = Mapping[str, Any]

APART = {
    "not exportable": "`torch.export` cannot trace it",
    "random": "it draws random numbers",
    "depends on data": "its shapes or its control flow depend on data",
    "not made": "the model cannot be made here",
    "not tried": "its package is not installed",
}
"""What is not counted, and why: costlib has no part in it."""


def parts() -> list[str]:
    """Return the page."""
    result = read_result("coverage")
    families: Mapping[str, Mapping[str, Record]] = result["families"]
    everything = [record for records in families.values() for record in records.values()]
    versions = [f"{name} {version}" for name, version in result["versions"].items()]
    limits = result["limits"]
    return [
        f"{_right(everything)} Each is a small model with random weights, made on the spot; "
        "nothing is downloaded. It is checked as `costlib check` does: imported, compiled untuned, "
        "and compared with the original on several kinds of inputs, those with NaN and infinities "
        "among them.",
        table(
            ["family", "counted", "right", "different", "unsupported", "other", "not counted"],
            [[name, *_counts(records.values())] for name, records in families.items()]
            + [["**all**", *_counts(everything)]],
        ),
        "*Other* would be a crash, a traceback, or more than "
        f"{limits['seconds']} s or {limits['bytes'] >> 30} GiB. What is not counted:",
        "\n".join(f"- *{status}*: {words}" for status, words in APART.items()),
        f"Tried with {in_words(versions)}, on commits {in_words(_commits(everything))}.",
        *(part for name, records in families.items() for part in _family(name, records)),
        *measured("coverage"),
    ]


def _counted(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record["status"] not in APART]


def _right(records: Iterable[Record]) -> str:
    counted = _counted(records)
    right = sum(record["status"] == "right" for record in counted)
    share = percent(right / len(counted), 1) if counted else "none"
    return f"Imported and right: {right} of {len(counted)} ({share})."


def _counts(records: Iterable[Record]) -> list[int]:
    found = Counter(record["status"] for record in records)
    apart = sum(found[status] for status in APART)
    named = [found[status] for status in ("right", "different", "unsupported")]
    total = found.total()
    return [total - apart, *named, total - apart - sum(named), apart]


def _commits(records: Iterable[Record]) -> list[str]:
    return sorted({f"`{record['commit']}`" for record in records})


def _family(name: str, records: Mapping[str, Record]) -> list[str]:
    refused = {
        model: record for model, record in records.items() if record["status"] not in _UNREASONED
    }
    return [
        f"## {name[0].upper()}{name[1:]}",
        _right(records.values()),
        table(
            ["architecture", "outcome", "tasks", "seconds", "peak memory, MiB"],
            [
                [f"`{model}`", r["status"], r["tasks"] or "", r["seconds"], r["peak_mib"] or ""]
                for model, r in records.items()
            ],
        ),
        *(
            ["\n".join(f"- `{m}`: {r['status']}: {_plain(r)}" for m, r in refused.items())]
            if refused
            else []
        ),
    ]


_UNREASONED = ("right", "not tried")


def _plain(record: Record) -> str:
    """Return the reason as text that Markdown leaves alone."""
    reason = (record["reason"] or "no reason is known")[:300]
    return f"`{reason.replace('`', chr(39))}`"


PAGE = Page("coverage", "Which architectures import", parts, ("coverage",))
