"""Networks compiled to a shared library, for this machine or for another."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from costlib.errors import CostlibError, StorageError, UnsupportedModelError, quoted
from costlib.files import storage_errors, write_file
from costlib.hardware import Hardware
from costlib.measure.faults import fault_in
from costlib.scratch import ScratchFolder
from costlib.tuning.vendor import VendorProgram, with_vendor
from costlib.tvm_compat.direct_calls import Direct
from costlib.tvm_compat.link import cross_tool, export_network, how_to_cross_link, is_foreign
from costlib.tvm_compat.networks import compile_network, object_bytes
from costlib.tvm_compat.onednn import NEEDED, calls_onednn, compiled_calls
from costlib.tvm_compat.quiet import stderr_silenced
from costlib.workloads.extraction import kernels_of
from costlib.workloads.interface import with_kernels

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NetworkLibrary:
    """The machine code of a network; made by :meth:`build`.

    Attributes
    ----------
    module
        What ``relax.VirtualMachine`` takes, on the machine that it is for.
    triple
        What machine code it is, as LLVM names it; empty for this machine's.
    direct
        What its one compiled function is called with; ``None`` if it has several.
    needs
        Libraries that it looks for where it runs.
    """

    module: Any
    triple: str
    direct: Direct | None
    needs: tuple[str, ...]
    _object_bytes: int

    @classmethod
    def build(
        cls,
        prepared: Any,
        hardware: Hardware,
        database: Any | None = None,
        vendor: Mapping[str, VendorProgram] = MappingProxyType({}),
    ) -> Self:
        """Compile a prepared network.

        Parameters
        ----------
        prepared
            What :func:`costlib.workloads.prepare_network` returns.
        hardware
            What to compile for.
        database
            A MetaSchedule database; subgraphs that it has no program for stay as they are.
        vendor
            Programs that are taken in the place of its, by workload id.

        Raises
        ------
        UnsupportedModelError
            TVM cannot compile it.
        """
        target = hardware.tvm_target()
        kernels = kernels_of(prepared, hardware.target)
        named = with_kernels(with_vendor(prepared, kernels, vendor), kernels, hardware.target)
        needs = (NEEDED,) if calls_onednn(named) else ()
        direct: list[Direct] = []
        try:
            module = compile_network(named, target, database, direct.append)
        except (CostlibError, OSError, MemoryError):
            raise
        except Exception as error:
            raise UnsupportedModelError(f"TVM cannot compile it: {quoted(error)}") from None
        triple = str(hardware.target.get("mtriple", ""))
        one = direct[0] if direct else None
        return cls(module, triple, one, needs, object_bytes(prepared))

    def save(self, path: str | Path) -> Path:
        """Write a shared library, in one step.

        Where there is no linker for the machine that it is for, its object files are written
        instead, as a ``.tar``, which TVM links there when it loads it.

        Returns
        -------
        Path
            What was written.

        Raises
        ------
        EnvironmentMismatchError
            No compiler is installed.
        StorageError
            It could not be linked or written; what was there before still is.
        """
        path = Path(path)
        if is_foreign(self.triple) and cross_tool("ld", self.triple) is None:
            path = path.with_suffix(".tar")
            _log.warning(
                "%s; %s holds its object files, which TVM links on the device when it loads them",
                how_to_cross_link(self.triple),
                path,
            )
        with storage_errors(path), ScratchFolder() as folder:
            self._check_room(path, folder)
            library = folder / path.name
            try:
                addons = [compiled_calls(folder)] if NEEDED in self.needs else []
                with stderr_silenced():
                    export_network(self.module, library, folder, self.triple, addons)
            except (RuntimeError, ValueError) as error:
                reason = fault_in(str(error)) or f"linking it failed ({_said_by_linker(error)})"
                raise StorageError(
                    f"cannot write {path}: {reason}; "
                    "see to it, then go on with --resume: what was measured is kept"
                ) from None
            write_file(path, library.read_bytes())
        return path

    def save_object(self, path: Path) -> None:
        """Write its kernels, and the function that calls them, as one object file."""
        (code,) = [module for module in self.module.mod.imports if module.kind == "llvm"]
        code.write_to_file(str(path))

    def _check_room(self, path: Path, folder: Path) -> None:
        """Raise before LLVM ends the process because it cannot write an object file."""
        free = shutil.disk_usage(folder).free
        if free < self._object_bytes:
            raise StorageError(
                f"cannot write {path}: its object files take about {self._object_bytes >> 10} KiB "
                f"and {folder.parent} has {free >> 10} left; free some space there, or set TMPDIR "
                "to a folder that has it"
            )


def _said_by_linker(error: Exception) -> str:
    """Return the line that tells most: the last one before TVM quotes the command."""
    said = str(error).partition("Command line:")[0].strip().splitlines()
    return said[-1].strip() if said else type(error).__name__
