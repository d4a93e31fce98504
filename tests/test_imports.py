"""Imports go one way, and starting is fast."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest

import costlib

PACKAGE = Path(costlib.__file__).parent

ORDER = (
    "errors",
    "frozen",
    "hiding",
    "identity",
    "canary_times",
    "schema",
    "arrays",
    "files",
    "places",
    "scratch",
    "remote",
    "tvm_compat",
    "processor",
    "hardware",
    "workloads",
    "space",
    "measure",
    "data",
    "logs",
    "features",
    "models",
    "sketch_pool",
    "training",
    "generator",
    "hub",
    "search",
    "testing",
    "tuning",
    "collecting",
    "metaschedule",
    "report",
    "dashboard",
    "cli",
)
"""The map: a package imports only from those before it, and from itself."""

WITHOUT_TVM = (
    "collecting.plan",
    "errors", "identity", "schema", "workloads.title", "data.card", "features.batch", "models",
    "hub",
)  # fmt: skip


def imported_by(file: Path) -> set[str]:
    """Packages of costlib that a module imports at its top level or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("costlib.")}
    return found


@pytest.mark.parametrize("package", ORDER)
def test_imports_point_upwards(package: str) -> None:
    allowed = set(ORDER[: ORDER.index(package) + 1])
    files = [PACKAGE / f"{package}.py", *(PACKAGE / package).rglob("*.py")]
    for file in files:
        if file.exists():
            assert imported_by(file) <= allowed, file


def imported_at_once(file: Path, modules: Collection[str]) -> set[str]:
    """Modules of costlib that a module imports when it is imported itself."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in modules else node.module)
    return found & set(modules)


def test_modules_import_one_another_in_no_circle() -> None:
    root = PACKAGE.parent
    names = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(root).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    graph = {name: imported_at_once(file, names) - {name} for name, file in names.items()}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(names)


def test_every_package_is_on_the_map() -> None:
    parts = {path.stem for path in PACKAGE.iterdir() if path.stem not in {"py", "__pycache__"}}
    assert parts - {"__init__", "__main__"} == set(ORDER)


def test_only_tvm_compat_imports_tvm() -> None:
    """Whoever imports it before that package starts it, does so in a minute or two."""
    for file in PACKAGE.rglob("*.py"):
        if "tvm_compat" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            assert not {name.split(".")[0] for name in names} & {"tvm", "tvm_ffi"}, file


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_importing_costlib_imports_nothing_heavy() -> None:
    heavy = "{'tvm', 'torch', 'polars', 'pyarrow', 'lightgbm', 'numpy', 'pydantic', 'matplotlib'}"
    assert run_python(f"import sys, costlib; print({heavy} & set(sys.modules))") == "set()"


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'tvm', 'torch', 'polars', 'pyarrow', 'lightgbm', 'numpy', 'matplotlib'}"
    code = (
        "import sys; from costlib.cli.app import run; sys.argv[1:] = ['--help']; run(); "
        f"print({heavy} & set(sys.modules))"
    )
    assert run_python(code).splitlines()[-1] == "set()"


@pytest.mark.parametrize("module", WITHOUT_TVM)
def test_works_where_tvm_is_not_installed(module: str) -> None:
    code = f"import sys; sys.modules['tvm'] = None; import costlib.{module}; print('fine')"
    assert run_python(code) == "fine"


def test_public_names_exist() -> None:
    for name in costlib.__all__:
        assert getattr(costlib, name) is not None
