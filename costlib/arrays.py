"""Types of arrays, whose docstrings give their shapes, and arrays in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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


def save_arrays(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """Write arrays in their order, bfloat16 included."""
    from safetensors.numpy import save_file

    save_file({f"{i:06}": np.array(a, order="C") for i, a in enumerate(arrays)}, path)


def load_arrays(path: Path) -> list[np.ndarray]:
    """Read what :func:`save_arrays` wrote."""
    from safetensors.numpy import load_file

    arrays = load_file(path)
    return [arrays[name] for name in sorted(arrays)]
