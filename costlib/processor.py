"""The processor of this machine: the instructions that it really runs.

LLVM's name of a processor stands for a set of instructions. A virtual machine may hide some of
them, or show more than the model has that it calls itself; Linux lists what is there.
"""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.errors import EnvironmentMismatchError, TargetError

X86_LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
"""The x86-64 psABI levels, best first: 512-bit vectors, 256-bit with FMA, 128-bit, base."""

_CPUINFO_NAMES = {"sse3": "pni", "bmi": "bmi1", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}
"""LLVM's name of an instruction set -> Linux's, where they differ."""

_INSTRUCTION_SETS = re.compile(r"(avx\w*|fma|sse|sse[234]|ssse3|sse4\.[12]|bmi2?)$")
"""LLVM features that are instructions it uses by itself, which AMX's are not, no hints."""

_PRODUCTS = {
    "amx-bf16": "amx_bf16",
    "amx-int8": "amx_int8",
    "amx-tile": "amx_tile",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avx512vnni": "avx512_vnni",
    "avxvnni": "avx_vnni",
}
"""Instructions for products of few bits, which are asked for beside a processor: Linux's names."""

_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _TILE_DATA = 158, 0x1023, 18


def best_mcpu() -> str:
    """Return the LLVM processor, or else the psABI level, whose instructions are all here."""
    from costlib.tvm_compat import tvm

    host = str(tvm.target.codegen.llvm_get_system_cpu())
    if platform.machine() != "x86_64" or runs_here(host):
        return host
    return next(level for level in X86_LEVELS if runs_here(level))


def runs_here(mcpu: str, mattr: Sequence[str] = ()) -> bool:
    """Whether this machine has all the instructions of a processor, and of LLVM's ``mattr``."""
    needed = {name for name in llvm_features(mcpu, mattr) if _INSTRUCTION_SETS.match(name)}
    needed |= {name.removeprefix("+") for name in mattr}
    flags = _flags()
    # Linux splits one feature name that LLVM keeps together: "avx512vnni" / "avx512_vnni".
    flags |= {flag.replace("_", "") for flag in flags if flag.startswith("avx")}
    flags |= {flag.replace("_", "-") for flag in flags if flag.startswith("amx")}
    return {_CPUINFO_NAMES.get(name, name) for name in needed} <= flags


def further_instructions(mcpu: str) -> list[str]:
    """Return, as LLVM's ``mattr``, those for products of few bits that a processor lacks by name.

    They are those that this machine has all the same; and AMX's, whatever the processor's name
    says, as it takes permission to use them.
    """
    if platform.machine() != "x86_64":
        return []
    known, flags = llvm_features(mcpu), _flags()
    wide = "avx512bw" in known
    return [
        f"+{name}"
        for name, flag in _PRODUCTS.items()
        if flag in flags
        and (name not in known or name.startswith("amx"))
        and (wide or "avx512" not in name)
    ]


def llvm_features(mcpu: str, mattr: Sequence[str] = ()) -> set[str]:
    """Return LLVM's names of what a processor, and ``mattr`` beside it, has."""
    from costlib.tvm_compat import tvm

    description = {"kind": "llvm", "mcpu": mcpu} | ({"mattr": list(mattr)} if mattr else {})
    target = tvm.target.Target(description)
    return {str(name) for name in tvm.target.codegen.llvm_get_cpu_features(target)}


def instructions_of(target: dict[str, Any]) -> set[str] | None:
    """Return LLVM's names of what code for a CPU's target may use; ``None`` if it knows it not."""
    from costlib.tvm_compat import tvm

    codegen = tvm.target.codegen
    known = {key: target[key] for key in ("kind", "mcpu", "mattr", "mtriple") if key in target}
    try:
        triple = str(known.get("mtriple") or codegen.llvm_get_system_triple())
        if "mcpu" in known and not codegen.llvm_is_valid_cpu(known["mcpu"], triple):
            return None
        return {str(name) for name in codegen.llvm_get_cpu_features(tvm.target.Target(known))}
    except (ValueError, RuntimeError, TypeError):
        return None


def has_instructions(target: dict[str, Any], name: str) -> bool:
    """Whether code for a target, as a dictionary, may use an instruction set of LLVM's."""
    is_named = target["kind"] == "llvm" and not {"mcpu", "mtriple"}.isdisjoint(target)
    return is_named and name in (instructions_of(target) or ())


def checked_attributes(mattr: Sequence[str]) -> list[str]:
    """Check what is asked for beside a processor.

    Raises
    ------
    TargetError
        It is none of the instruction sets that can be.
    """
    for name in mattr:
        if name.removeprefix("+") not in _PRODUCTS or not name.startswith("+"):
            known = ", ".join(f"+{one}" for one in _PRODUCTS)
            raise TargetError(f"mattr has '{name}'; what may be asked for is {known}")
    return sorted(set(mattr))


def vector_bits(mcpu: str) -> int:
    """Return the width of one vector register of a processor in bits."""
    if platform.machine() != "x86_64":
        return 128
    features = llvm_features(mcpu)
    return 512 if "avx512f" in features else 256 if "avx" in features else 128


def cpu_model() -> str:
    """Return the processor as it names itself, with family and model."""
    info = _cpuinfo()
    name = info.get("model name") or platform.processor() or platform.machine()
    name = re.sub(r"\((R|TM)\)|@.*|\bCPU\b|\bProcessor\b", " ", name)
    name = " ".join(name.split())
    if {"cpu family", "model"} <= info.keys():
        name += f" f{info['cpu family']}m{info['model']}"
    return name


def cache_bytes() -> tuple[int, ...]:
    """Return the sizes of per-core L1 and L2 and the shared last level, as Linux reports them."""
    levels: dict[int, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if (index / "type").read_text().strip() == "Instruction":
                continue
            size = (index / "size").read_text().strip()
            levels[int((index / "level").read_text())] = int(size.removesuffix("K")) * 1024
        except (OSError, ValueError):
            continue
    return tuple(levels[level] for level in sorted(levels))


def last_cache_cores() -> int:
    """Return how many cores (threads) share the last cache, as Linux reports; 0 if unknown."""
    last = max(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"), default=None)
    try:
        sharing = "" if last is None else (last / "shared_cpu_map").read_text()
        return int(sharing.replace(",", ""), 16).bit_count()
    except (OSError, ValueError):
        return 0


def allow_tiles(target: dict[str, Any]) -> None:
    """Have Linux let this process, and those forked from it, use AMX's tiles if a target has them.

    Without it the first such instruction ends the process (Linux, Documentation/arch/x86/xstate).

    Raises
    ------
    EnvironmentMismatchError
        This processor has no AMX, or Linux refuses.
    """
    if "+amx-tile" not in target.get("mattr", ()):
        return
    if "amx_tile" not in _flags():
        raise EnvironmentMismatchError(
            "this is compiled for AMX, which this processor lacks; compile it for this machine"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _TILE_DATA):
        code = ctypes.get_errno()
        raise EnvironmentMismatchError(
            f"Linux does not let this process use AMX (error {code}); it takes Linux 5.16 or newer "
            "and a container that lets arch_prctl through; or compile with --mcpu x86-64-v4"
        )


def _flags() -> set[str]:
    return set(_cpuinfo().get("flags", "").split())


def _cpuinfo() -> dict[str, str]:
    first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in first.split("\n"))}
