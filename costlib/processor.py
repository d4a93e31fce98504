"""The processor of this machine: its name, its caches, and the code that it runs."""

from __future__ import annotations

import platform
import re
from pathlib import Path

X86_LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
"""The x86-64 psABI levels, best first: 512-bit vectors, 256-bit with FMA, 128-bit, base."""

_CPUINFO_NAMES = {"sse3": "pni", "bmi": "bmi1", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}
"""LLVM's name of an instruction set -> Linux's, where they differ."""

_INSTRUCTION_SETS = re.compile(r"(avx\w*|fma|sse|sse[234]|ssse3|sse4\.[12]|bmi2?|amx\w*)$")
"""LLVM features that are instructions our code may use, not scheduling hints."""


def best_mcpu() -> str:
    """Return LLVM's name of the most that this machine really runs."""
    from costlib.tvm_compat import tvm

    host = str(tvm.target.codegen.llvm_get_system_cpu())
    if platform.machine() != "x86_64" or runs_here(host):
        return host
    return next(level for level in X86_LEVELS if runs_here(level))


def runs_here(mcpu: str) -> bool:
    """Whether this machine has all the instructions of ``mcpu``."""
    needed = {name for name in _llvm_features(mcpu) if _INSTRUCTION_SETS.match(name)}
    flags = set(_cpuinfo().get("flags", "").split())
    # Linux splits one feature name that LLVM keeps together: "avx512vnni" / "avx512_vnni".
    flags |= {flag.replace("_", "") for flag in flags if flag.startswith("avx512")}
    return {_CPUINFO_NAMES.get(name, name) for name in needed} <= flags


def _llvm_features(mcpu: str) -> set[str]:
    from costlib.tvm_compat import tvm

    target = tvm.target.Target({"kind": "llvm", "mcpu": mcpu})
    return {str(name) for name in tvm.target.codegen.llvm_get_cpu_features(target)}


def vector_bits(mcpu: str) -> int:
    """Return the width of a vector register that code for ``mcpu`` uses, in bits."""
    if platform.machine() != "x86_64":
        return 128
    features = _llvm_features(mcpu)
    return 512 if "avx512f" in features else 256 if "avx" in features else 128


def _cpuinfo() -> dict[str, str]:
    first = Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0]
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in first.split("\n"))}


def cpu_model() -> str:
    """Return the processor's name without what all of its vendor's have."""
    info = _cpuinfo()
    name = info.get("model name") or platform.processor() or platform.machine()
    name = re.sub(r"\((R|TM)\)|@.*|\bCPU\b|\bProcessor\b", " ", name)
    name = " ".join(name.split())
    if {"cpu family", "model"} <= info.keys():
        name += f" f{info['cpu family']}m{info['model']}"
    return name


def cache_bytes() -> tuple[int, ...]:
    """Per-core L1 and L2 and the shared last level, as Linux reports them."""
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
