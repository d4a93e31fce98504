"""Start TVM without what makes a stock start slow.

TVM takes half of the processors it sees for hyper-threads; unless ``TVM_NUM_THREADS`` says
otherwise, it gets them all.

Five things make a stock start slow, and each is undone here on its own:

1. ``tvm_ffi`` imports torch if it can. We hide torch during the import; torch imported
   later works as before.
2. The first ``TuneContext`` imports ``tvm.s_tir.tensor_intrin``, which parses the
   tensor intrinsics of *every* backend. We replace the package by one whose submodules
   are imported when a target needs them.
3. Each parsed TVMScript function calls ``inspect.stack()``, which looks up the source of
   every frame. While intrinsics are imported, a version without that look-up stands in.
4. Each of dozens of modules asks for the names of all functions that C++ registered. While TVM is
   imported, they are fetched again only if there are more.
5. A type that the installed runtime lacks is an error in C++, whose backtrace makes it read the
   symbols of all libraries. While TVM is imported, such a type is looked for in a list first.

``tests/tvm_compat`` holds a test for each that fails once TVM no longer needs it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from costlib.hiding import hidden

INTRINSICS = "tvm.s_tir.tensor_intrin"

INTRINSIC_MODULES = {
    "llvm": ("x86",),
    "arm_cpu": ("arm_cpu",),
    "riscv_cpu": ("riscv_cpu",),
    "cuda": ("cuda",),
    "rocm": ("cuda", "rocm"),
    "metal": ("metal",),
    "hexagon": ("hexagon",),
}
"""The intrinsic modules that a target kind, or one of a target's keys, makes use of."""


def start() -> ModuleType:
    """Import TVM, ready for MetaSchedule on an x86 CPU target.

    Returns
    -------
    module
        The ``tvm`` package. Calling this again costs nothing; if the process had imported
        TVM before, only what has not happened yet is sped up.
    """
    os.environ.setdefault("TVM_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    with hidden("torch"), _names_fetched_once(), _types_looked_up():
        tvm = importlib.import_module("tvm")
    if INTRINSICS not in sys.modules:
        _make_intrinsics_lazy()
        load_intrinsics("llvm")
        _load_intrinsics_with_each_context()
    return tvm


def load_intrinsics(*names: str) -> None:
    """Register the tensor intrinsics that a target uses.

    Parameters
    ----------
    names
        The target's kind and keys, and ``amx``; those without intrinsics of their own are ignored.
    """
    with quick_parsing():
        for name in names:
            for module in INTRINSIC_MODULES.get(name, ()):
                importlib.import_module(f"{INTRINSICS}.{module}")
        if "llvm" in names:
            importlib.import_module("costlib.tvm_compat.intrinsics").register()
        if "amx" in names:
            importlib.import_module("costlib.tvm_compat.tiles").register()


@contextlib.contextmanager
def quick_parsing() -> Iterator[None]:
    """Parse TVMScript that captures no variables in a tenth of the time."""
    stack = inspect.stack
    inspect.stack = _stack_without_source
    try:
        yield
    finally:
        inspect.stack = stack


@contextlib.contextmanager
def _names_fetched_once() -> Iterator[None]:
    """Let ``tvm_ffi`` keep the names of the functions that C++ registered."""
    registry: Any = importlib.import_module("tvm_ffi.registry")
    fetch = registry.list_global_func_names
    names: list[str] = []

    def kept() -> list[str]:
        names_of = registry.get_global_func("ffi.FunctionListGlobalNamesFunctor")()
        if names_of(-1) != len(names):
            names[:] = fetch()
        return names

    registry.list_global_func_names = kept
    try:
        yield
    finally:
        registry.list_global_func_names = fetch


@contextlib.contextmanager
def _types_looked_up() -> Iterator[None]:
    """Let ``tvm_ffi`` ask C++ for those types alone that are there."""
    registry: Any = importlib.import_module("tvm_ffi.registry")
    find = registry.core._object_type_key_to_index
    known: set[str] = set()

    def index_of(key: str) -> int | None:
        if key not in known:
            known.update(registry.get_registered_type_keys())
        return find(key) if key in known else None

    registry.core._object_type_key_to_index = index_of
    try:
        yield
    finally:
        registry.core._object_type_key_to_index = find


def _make_intrinsics_lazy() -> None:
    spec = importlib.util.find_spec(INTRINSICS)
    assert spec is not None and spec.submodule_search_locations is not None
    package = ModuleType(INTRINSICS)
    package.__path__ = list(spec.submodule_search_locations)
    package.__spec__ = spec
    sys.modules[INTRINSICS] = package


def _load_intrinsics_with_each_context() -> None:
    """Let every ``TuneContext``, also one that a user makes, find its target's intrinsics."""
    from tvm.s_tir.meta_schedule import TuneContext
    from tvm.target import Target

    init = TuneContext.__init__

    @functools.wraps(init)
    def init_with_intrinsics(self: Any, *args: Any, **kwargs: Any) -> None:
        target = kwargs.get("target") or Target.current(allow_none=True)
        if target is not None:
            target = target if isinstance(target, Target) else Target(target)
            load_intrinsics(target.kind.name, *target.keys)
        init(self, *args, **kwargs)

    TuneContext.__init__ = init_with_intrinsics


def _stack_without_source(context: int = 1) -> list[inspect.FrameInfo]:
    return [
        inspect.FrameInfo(frame, frame.f_code.co_filename, line, frame.f_code.co_name, None, None)
        for frame, line in traceback.walk_stack(sys._getframe(1))
    ]
