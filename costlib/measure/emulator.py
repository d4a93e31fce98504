"""Networks for another processor, run on this one by QEMU: what they compute, not how fast.

TVM has no runtime for it here, and none is needed: a network's one compiled function is linked with
a small program (``emulator.c``) that calls it. An emulator's times say nothing of a device's; none
is taken.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.errors import EnvironmentMismatchError, MeasureError
from costlib.tvm_compat import tvm
from costlib.tvm_compat.direct_calls import Direct
from costlib.tvm_compat.link import cross_tool, include_paths
from costlib.tvm_compat.straight_line import ALIGNMENT, Base, tensor_bytes

_SOURCE = Path(__file__).with_suffix(".c")
_SECS = 600.0
_ALL_FEATURES = ("-cpu", "max")


def what_is_missing(triple: str) -> str | None:
    """Say in a line what it takes to run networks of a processor here; ``None`` if all is there."""
    machine = triple.partition("-")[0]
    if shutil.which(f"qemu-{machine}") is None:
        return f"qemu-{machine} is not installed (apt-get install qemu-user)"
    if cross_tool("gcc", triple) is None:
        return f"no C compiler for {machine} is installed (apt-get install gcc-{machine}-linux-gnu)"
    return None


class EmulatedNetwork:
    """A network's code in a program of its own, which QEMU runs.

    Parameters
    ----------
    direct
        What its one function is called with.
    save_object
        Writes its code to an object file.
    triple
        What machine code that is, as LLVM names it.
    folder
        Where the program goes.

    Raises
    ------
    EnvironmentMismatchError
        There is no emulator or no compiler, or the code needs more of TVM than kernels do.
    """

    def __init__(
        self, direct: Direct, save_object: Callable[[Path], None], triple: str, folder: Path
    ) -> None:
        if (missing := what_is_missing(triple)) is not None:
            raise EnvironmentMismatchError(missing)
        kernels = (tvm.ir.GlobalVar,)
        others = {call.name for call in direct.line.calls if not isinstance(call.function, kernels)}
        if others:
            raise EnvironmentMismatchError(
                f"it calls {min(others)} of TVM's runtime, which is not emulated"
            )
        self._direct = direct
        self._folder = folder
        self._program = folder / "emulated"
        self._emulator = f"qemu-{triple.partition('-')[0]}"
        code = folder / "emulated.o"
        save_object(code)
        includes = [f"-I{path}" for path in include_paths()]
        compiler = str(cross_tool("gcc", triple))
        objects = [str(_SOURCE), str(code)]
        command = [compiler, "-static", "-w", *includes, "-o", str(self._program), *objects, "-lm"]
        try:
            _run(command, "it does not link for the emulator")
        except MeasureError as error:
            raise EnvironmentMismatchError(str(error)) from None
        code.unlink()

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the network.

        Parameters
        ----------
        arrays
            Its inputs, and what it keeps from call to call.

        Returns
        -------
        list of array
            What it returns, flattened, and what it keeps.

        Raises
        ------
        MeasureError
            It crashes, or takes too long.
        """
        line = self._direct.line
        arguments, results = self._folder / "arguments", self._folder / "results"
        with arguments.open("wb") as file:
            _write_arguments(file.write, self._direct, arrays)
        command = [self._emulator, *_ALL_FEATURES, str(self._program)]
        _run([*command, str(arguments), str(results)], "it does not run in the emulator")
        raw = results.read_bytes()
        found: dict[Base, bytes] = {}
        for output in line.outputs:
            found[output.base], raw = raw[: output.nbytes], raw[output.nbytes :]
        for tensor, array in zip(line.inputs, arrays, strict=True):
            found[tensor.base] = np.ascontiguousarray(array).tobytes()
        for number, constant in enumerate(line.constants):
            found[Base("constant", number)] = constant.value.numpy().tobytes()
        return [
            np.frombuffer(found[tensor.base], tensor.dtype).reshape(tensor.shape)
            for tensor in line.returned
        ]


def _run(command: Sequence[str], trouble: str) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECS)
    except subprocess.TimeoutExpired:
        raise MeasureError(f"{trouble}: it took more than {_SECS:.0f} s") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise MeasureError(f"{trouble}: {said}")


def _write_arguments(
    write: Callable[[bytes], Any], direct: Direct, arrays: Sequence[np.ndarray]
) -> None:
    """Write what the function is called with: of each tensor its type, shape, role and bytes."""
    line = direct.line
    constants = [constant.numpy() for constant in direct.constants]
    clock = len(line.calls) + 1
    write(struct.pack("<q", len(arrays) + len(line.outputs) + len(constants) + 2))

    def tensor(shape: Sequence[int], dtype: str, data: bytes | None = None, role: int = 0) -> None:
        kind = tvm.DataType(dtype)
        head = [int(kind.type_code), int(kind.bits), len(shape), *shape, role, data is not None]
        write(struct.pack(f"<{len(head) + 1}q", *head, tensor_bytes(shape, dtype)))
        write(data or b"")

    for spec, array in zip(line.inputs, arrays, strict=True):
        tensor(spec.shape, spec.dtype, np.ascontiguousarray(array).tobytes())
    for spec in line.outputs:
        tensor(spec.shape, spec.dtype, role=1)
    for constant in constants:
        tensor(constant.shape, str(constant.dtype), constant.tobytes())
    tensor([max(direct.work_bytes, ALIGNMENT)], "uint8")
    tensor([clock], "int64")
