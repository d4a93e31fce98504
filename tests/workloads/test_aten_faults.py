"""What TVM's importer of PyTorch's programs computes wrongly, ours rightly."""

from __future__ import annotations

import contextlib
import io

import pytest
import torch
from aten_cases import THEMES
from test_aten import Together, assert_same
from torch.utils import _pytree as pytree

from costlib.tvm_compat import relax, tvm
from costlib.workloads.importers.aten.replaced import FAULTS
from costlib.workloads.torch_arrays import to_numpy

CASES = [case for theme in THEMES.values() for case in theme()]


def theirs(program, case):
    """Import a case with TVM's own importer and run it."""
    from tvm.relax.frontend.torch import from_exported_program

    module = from_exported_program(program)
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(to_numpy(x)) for x in case.inputs])
    return [output.numpy() for output in found]


def test_every_fault_has_a_case():
    assert set(FAULTS) <= {case.operator for case in CASES}


@pytest.mark.parametrize("operator", FAULTS)
def test_theirs_is_still_wrong(operator):
    for case in CASES:
        if case.operator != operator:
            continue
        expected = pytree.tree_leaves(case.expected())
        program = torch.export.export(Together([case]), ([case.inputs],))
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                found = theirs(program, case)
            for ours, right in zip(found, expected, strict=True):
                assert_same(operator, ours, to_numpy(right))
        except (Exception, AssertionError):  # Whatever it is that it does wrong.
            return
    pytest.fail(f"TVM computes {operator} rightly now: take it from the list of faults")
