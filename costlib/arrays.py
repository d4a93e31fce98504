"""Types of arrays; docstrings give their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
"""float64: scores, labels, seconds."""

Float32s = np.ndarray[Any, np.dtype[np.float32]]
"""float32: features."""

Integers = np.ndarray[Any, np.dtype[np.int64]]
"""int64: indices, groups, vectors of decisions."""

Bools = np.ndarray[Any, np.dtype[np.bool_]]
"""bool: masks."""
