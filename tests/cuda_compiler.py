"""A mark for tests that compile CUDA code: skipped where no compiler is installed."""

from __future__ import annotations

import pytest

from costlib.errors import EnvironmentMismatchError
from costlib.tvm_compat.cuda import find_compiler


def _is_installed() -> bool:
    try:
        find_compiler()
    except EnvironmentMismatchError:
        return False
    return True


needs_cuda_compiler = pytest.mark.skipif(not _is_installed(), reason="no CUDA compiler installed")
