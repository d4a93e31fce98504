"""LightGBM alone, without what its import would bring along.

That is scikit-learn, pandas and Dask: seconds of work, for interfaces that costlib does not use.
The copy that is imported here is costlib's own; whoever imports ``lightgbm`` later gets all of it.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from costlib.hiding import hidden

if TYPE_CHECKING:
    import lightgbm as lgb

_UNUSED = ("sklearn", "pandas", "dask", "distributed", "matplotlib", "graphviz")


def _load() -> Any:
    if "lightgbm" in sys.modules:
        return sys.modules["lightgbm"]
    with hidden(*_UNUSED):
        module = importlib.import_module("lightgbm")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lightgbm"]:
        del sys.modules[name]
    return module


if not TYPE_CHECKING:
    lgb = _load()

__all__ = ["lgb"]
