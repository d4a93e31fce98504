"""TVM as costlib needs it: the tested version, started fast.

Importing this package checks the installed versions and starts TVM; every other module of
costlib gets TVM from here (``from costlib.tvm_compat import tvm``). Whatever depends on a
particular TVM release lives in this package and nowhere else:

- :mod:`~costlib.tvm_compat.versions`: the pins, and the error when they are not met;
- :mod:`~costlib.tvm_compat.fast_start`: start-up in seconds instead of minutes;
- :mod:`~costlib.tvm_compat.vector_math`: exponentials that compile to vector instructions;
- :mod:`~costlib.tvm_compat.lowering`: what is done to programs between schedule and machine code;
- :mod:`~costlib.tvm_compat.nan_math`: maxima that keep a NaN;
- :mod:`~costlib.tvm_compat.typed_pointers`: programs for tensor cores that compile;
- :mod:`~costlib.tvm_compat.wmma`: tensor cores for bfloat16 and TF32;
- :mod:`~costlib.tvm_compat.cubin`: what compiled kernels take of a GPU;
- :mod:`~costlib.tvm_compat.quiet`: warnings that nobody can act on, kept off the terminal;
- :mod:`~costlib.tvm_compat.api`: the names outside TVM's documented interface that we call;
- :mod:`~costlib.tvm_compat.nodes`: the nodes of its IR that we look at.
"""

from __future__ import annotations

from costlib.tvm_compat.fast_start import load_intrinsics, quick_parsing, start
from costlib.tvm_compat.versions import check_versions

check_versions()
tvm = start()

from tvm import relax, te, tirx, topi  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402

from costlib.tvm_compat import lowering, nan_math, typed_pointers, vector_math  # noqa: E402

vector_math.install()
lowering.install()
nan_math.install()
typed_pointers.install()

__all__ = ["load_intrinsics", "ms", "quick_parsing", "relax", "te", "tirx", "topi", "tvm"]
