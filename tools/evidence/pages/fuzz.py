"""Damaged files."""

from __future__ import annotations

from tools.evidence.files import read_result
from tools.evidence.markdown import table
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured

_READERS = {
    "bundle": "bundles",
    "dataset": "datasets",
    "plan": "collection plans",
    "result": "results of runs",
    "generator": "generators",
    "mlp": "models: MLP",
    "sequence": "models: transformer",
    "metaschedule": "logs of MetaSchedule, JSON",
    "sqlite": "logs of MetaSchedule, SQLite",
    "steps": "logs of Ansor and AutoTVM",
    "network": "networks: TVM's JSON",
    "onnx": "networks: ONNX",
    "torch": "networks: saved PyTorch programs",
    "messages": "messages of a fleet's devices",
}
_FINE = ("accepted", "refused")


def parts() -> list[str]:
    """Return the page."""
    rows = []
    for name, found in read_result("fuzz").items():
        accepted, refused = (found["outcomes"].get(outcome, 0) for outcome in _FINE)
        other = found["inputs"] - accepted - refused
        rows.append([_READERS[name], found["inputs"], accepted, refused, other])
    total = ["**all**", *(sum(row[column] for row in rows) for column in range(1, 5))]
    return [
        "Small valid files are changed at random and read by a process with limits on time and "
        "memory. *Refused* means one clear line. *Accepted* means that the change did no harm, or "
        "that the reader left out what it could not read and said so, as importers of logs do. "
        "*Anything else* would be a crash, a hang, or another error.",
        table(["reader of", "inputs", "accepted", "refused", "anything else"], [*rows, total]),
        *measured("fuzz"),
    ]


PAGE = Page("fuzz", "Damaged files", parts, ("fuzz",))
