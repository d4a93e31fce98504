"""Programs of any shape: extents are symbols until a program is called.

TVM's own importers keep symbols where ours fix them. What they make is not tuned: it has the loops
that TVM writes by itself.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from costlib.errors import UnsupportedModelError, quoted
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.quiet import stderr_silenced


def torch_of_any_shape(program: Any) -> Any:
    """Import a ``torch.export`` program with symbolic extents.

    Raises
    ------
    UnsupportedModelError
        TVM's importer cannot.
    """
    from tvm.relax.frontend.torch import from_exported_program

    return _imported(lambda: from_exported_program(program, keep_params_as_input=False))


def onnx_of_any_shape(model: Any) -> Any:
    """Import an ONNX model with named dimensions; see :func:`torch_of_any_shape`."""
    from tvm.relax.frontend.onnx import from_onnx

    return _imported(lambda: from_onnx(model, keep_params_in_input=False))


def _imported(run: Callable[[], Any]) -> Any:
    with stderr_silenced():  # TVM warns when what the importer leaves behind is destroyed.
        try:
            return run()
        except MemoryError:
            raise
        except Exception as error:
            reason = quoted(error)
        gc.collect()
    raise UnsupportedModelError(reason)


def lowered(mod: Any, target: Any) -> Any:
    """Lower and fuse a module of symbolic extents.

    Raises
    ------
    UnsupportedModelError
        TVM cannot.
    """
    transform = relax.transform
    passes = [
        transform.LegalizeOps(),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
        transform.DeadCodeElimination(),
    ]
    try:
        with target, tvm.transform.PassContext(opt_level=3):
            return tvm.transform.Sequential(passes)(mod)
    except MemoryError:
        raise
    except Exception as error:
        reason = quoted(error)
        raise UnsupportedModelError(f"TVM cannot lower a program of any shape: {reason}") from None
