"""What a model looks at."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.features.kinds import pooled_kinds
from costlib.models.base import CostModel
from costlib.models.trees import TreeModel
from costlib.report.page import Bar, Section, Table
from costlib.report.units import share

_TITLE = "What it looks at"


def importance_section(model: CostModel) -> Section:
    """Say what splits by each kind of feature gained, of all that a model of trees gained."""
    if not isinstance(model, TreeModel):
        return Section(_TITLE, f"A model of kind '{model.kind}' has no splits to ask.")
    gains = model.gains()
    kinds = _kinds(model, len(gains))
    total = gains.sum()
    if not total or kinds is None:
        return Section(_TITLE, "Its files do not say what its splits gained.")
    named = np.array(kinds)
    rows = [(gains[named == kind].sum() / total, kind) for kind in dict.fromkeys(kinds)]
    shown = [
        [kind, Bar(float(part), share(float(part))), int((named == kind).sum())]
        for part, kind in sorted(rows, reverse=True)
    ]
    table = Table(("kind of feature", "share of the gain", ">columns"), shown)
    text = "The gain of all splits in training (LightGBM's), by what the column describes."
    return Section(_TITLE, text, [table])


def _kinds(model: TreeModel[Any], columns: int) -> list[str] | None:
    """The kind of each of so many pooled columns; ``None`` if they are not that."""
    if model.view != "statements":
        return ["steps of the schedule"] * columns if columns else None
    kinds = pooled_kinds(model.columns)
    return kinds if len(kinds) == columns else None
