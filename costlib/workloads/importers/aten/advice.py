"""What to write instead of what is not supported."""

from __future__ import annotations

RANDOM = "call eval() before exporting, or pass random numbers as an input"

_DATA = "the shape of its result depends on data; use torch.where on a full tensor"
INSTEAD = {
    "aten._local_scalar_dense": "the graph depends on a value; keep it in a tensor",
    "aten._unique2": _DATA,
    "aten.bincount": _DATA,
    "aten.masked_select": _DATA,
    "aten.nonzero": _DATA,
    "aten.unique_consecutive": _DATA,
    "aten.unique_dim": _DATA,
}
"""The nearest way to write what is not supported."""
