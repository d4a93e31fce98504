"""A mark for tests that run code for ARM64: skipped where that cannot be linked or emulated."""

from __future__ import annotations

import pytest

from costlib.measure.emulator import what_is_missing
from costlib.tvm_compat.link import cross_tool

TRIPLE = "aarch64-linux-gnu"

needs_emulator = pytest.mark.skipif(
    what_is_missing(TRIPLE) is not None, reason=what_is_missing(TRIPLE) or ""
)
needs_cross_linker = pytest.mark.skipif(
    cross_tool("ld", TRIPLE) is None, reason="no linker for aarch64 is installed"
)
