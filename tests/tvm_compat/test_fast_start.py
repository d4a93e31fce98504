"""Starting fast works, and each part of it is still needed by the TVM that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

FIRST_SPACE = """
import inspect, json, sys
calls = []
inspect.stack = lambda context=1: (calls.append(1), [])[1]
import costlib.tvm_compat as compat
from costlib.hardware import find_hardware
assert not calls, "intrinsics are parsed slowly"
target = find_hardware(sys.argv[1]).tvm_target()
source = '''
@T.prim_func(s_tir=True)
def main(a: T.Buffer((64, 64), "float32"), b: T.Buffer((64, 64), "float32")):
    for i, j in T.grid(64, 64):
        with T.sblock("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj] * T.float32(2)
'''
mod = compat.tvm.IRModule({"main": compat.tvm.script.from_source(source)})
calls.clear()
context = compat.ms.TuneContext(
    mod=mod, target=target, space_generator="post-order-apply", task_name="t", rand_state=1
)
spaces = len(context.generate_design_space())
assert not calls, "intrinsics are parsed slowly"
intrinsics = "tvm.s_tir.tensor_intrin."
modules = [m.removeprefix(intrinsics) for m in sys.modules if m.startswith(intrinsics)]
slow = [m for m in ("torch", "sklearn", "pandas", "scipy", "matplotlib") if m in sys.modules]
print(json.dumps([spaces, modules, slow]))
"""

STOCK = """
import inspect, json, sys
seen_torch = []
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            seen_torch.append(name)
            raise ImportError(name)
sys.meta_path.insert(0, Finder())
from tvm_ffi import registry
fetch, fetched = registry.list_global_func_names, []
registry.list_global_func_names = lambda: [fetch(), fetched.append(1)][0]
find, unknown = registry.core._object_type_key_to_index, []
def index_of(key):
    index = find(key)
    if index is None:
        unknown.append(key)
    return index
registry.core._object_type_key_to_index = index_of
import tvm
calls = []
inspect.stack = lambda context=1: (calls.append(1), [])[1]
try:
    import tvm.s_tir.tensor_intrin
except Exception:
    pass
modules = [m for m in sys.modules if m.startswith("tvm.s_tir.tensor_intrin.")]
print(json.dumps([len(seen_torch), len(fetched), len(unknown), len(calls), modules]))
"""


def run(code: str, *arguments: str, **environment: str) -> str:
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    return process.stdout.strip()


@pytest.mark.parametrize(("spec", "needed"), [("cpu", {"x86"}), ("cuda:sm_80", {"x86", "cuda"})])
def test_the_first_design_space_loads_what_it_needs_alone(spec: str, needed: set[str]) -> None:
    spaces, intrinsics, slow = json.loads(run(FIRST_SPACE, spec))
    assert spaces >= 1
    assert set(intrinsics) == needed
    assert slow == []


def test_torch_is_not_imported_but_can_be_later() -> None:
    code = (
        "import sys, costlib.tvm_compat as c; before = 'torch' in sys.modules; import torch; "
        "t = c.tvm.runtime.tensor(torch.ones(2).numpy()); print(before, t.numpy().sum())"
    )
    assert run(code) == "False 2.0"


def test_a_tvm_that_was_imported_before_is_taken_as_it_is() -> None:
    before = "import sys; sys.modules['torch'] = None; import tvm; "
    assert run(before + "from costlib.tvm_compat import tvm as t; print(t is tvm)") == "True"


def test_functions_of_modules_are_those_of_a_stock_start() -> None:
    code = """
import json, sys
modules = {name: module for name, module in sys.modules.items() if name.endswith("_ffi_api")}
names = {name: sorted(set(vars(module)) - {"__cached__"}) for name, module in modules.items()}
print(json.dumps(names, sort_keys=True))
"""
    ours = run("import costlib.tvm_compat" + code)
    stock = run("import sys; sys.modules['torch'] = None; import tvm; from tvm import relax" + code)
    assert ours == stock and len(json.loads(stock)) > 20


def test_intrinsics_of_other_targets_come_with_their_context() -> None:
    code = """
import sys
from costlib.tvm_compat import ms, tvm
name = "tvm.s_tir.tensor_intrin.arm_cpu"
before = name in sys.modules
ms.TuneContext(target={"kind": "llvm", "mtriple": "aarch64-linux-gnu", "keys": ["arm_cpu", "cpu"]})
print(before, name in sys.modules)
"""
    assert run(code) == "False True"


def test_a_search_imports_no_intrinsics_of_another_processor() -> None:
    code = (
        "import sys, costlib.search.config; "
        "print([m for m in sys.modules if 'tensor_intrin.' in m])"
    )
    assert run(code) == "['tvm.s_tir.tensor_intrin.x86']"


def test_names_of_arm_are_those_of_tvm() -> None:
    code = (
        "from costlib.tvm_compat import intrinsics as ours, load_intrinsics; "
        "load_intrinsics('arm_cpu'); from tvm.s_tir.tensor_intrin import arm_cpu as a; "
        "print((a.ARM_DOT_4x4_i8_SDOT_INTRIN, a.ARM_DOT_4x4_i8_NEON_INTRIN) "
        "== (ours.ARM_SDOT, ours.ARM_NEON))"
    )
    assert run(code) == "True"


def test_all_cores_are_used_unless_the_user_says_otherwise() -> None:
    code = "import os, costlib.tvm_compat; print(os.environ['TVM_NUM_THREADS'])"
    assert run(code, TVM_NUM_THREADS="1") == "1"


def test_each_part_is_still_needed() -> None:
    """Fails once a TVM release starts fast by itself: then remove that part."""
    torch_imports, names_fetched, unknown, stack_calls, modules = json.loads(run(STOCK))
    assert torch_imports > 0, "tvm_ffi does not import torch any more: do not hide it"
    assert names_fetched > 20, "modules do not fetch names any more: drop _names_fetched_once"
    assert unknown > 0, "TVM asks for no unknown types any more: drop _types_looked_up"
    assert stack_calls > 100, "parsing does not walk the stack any more: drop _stack_without_source"
    assert len(modules) > 1, "intrinsics are imported one by one: drop _make_intrinsics_lazy"
