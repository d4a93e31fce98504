"""A mark for tests that compile CUDA code: skipped where no compiler is installed."""

from __future__ import annotations

import pytest

from costlib.tvm_compat.cuda import has_compiler

needs_cuda_compiler = pytest.mark.skipif(not has_compiler(), reason="no CUDA compiler installed")
