"""Hardware: what a program was compiled for and measured on.

A measurement is worth something only beside the hardware it was made on, so every record
carries a hardware id. The id covers the processor model, the instructions that code
generation may use and the number of cores: the same machine measured with AVX2 and with
SSE4.2 code is two hardwares.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, field_validator

from costlib.errors import TargetError, quoted
from costlib.frozen import FrozenStrict
from costlib.identity import content_id
from costlib.processor import (
    best_mcpu,
    cache_bytes,
    checked_attributes,
    cpu_model,
    further_instructions,
    last_cache_cores,
    runs_here,
    vector_bits,
)

_Count = Annotated[int, Field(ge=0, lt=2**63)]

_CUDA_ARCH = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")

_AARCH64_FEATURES = ("dotprod", "fullfp16", "i8mm", "bf16", "sve", "sve2")
"""What an ARM64 processor may have beside NEON, as LLVM calls it."""

_WIDE_SVE = {"sve256": 256, "sve512": 512}
"""SVE whose registers are known to have as many bits, which LLVM then uses for fixed vectors."""

_CORES_OF_A_BOARD = 4
_SIMULATED = "simulated "


class Hardware(FrozenStrict):
    """One kind of device together with the code generated for it.

    Attributes
    ----------
    kind
        ``"cpu"``, or the kind of the target: ``"cuda"``, ``"metal"``, ...
    model
        The processor as it names itself.
    num_cores
        Cores (threads) that a program may use; the multiprocessors of a GPU; 0 if unknown.
    target
        The TVM target, as the dictionary that ``tvm.target.Target`` takes.
    vector_bits
        Width of one vector register in bits; of a thread's widest memory access on a GPU; 0 if
        unknown.
    cache_bytes
        Size of the data caches by level, in bytes, L1 (a GPU's shared memory of one block)
        first; empty if unknown.
    last_cache_cores
        Cores (threads) that share the last of them; 0 if unknown.
    """

    kind: str
    model: str
    num_cores: _Count
    target: dict[str, Any]
    vector_bits: _Count
    cache_bytes: tuple[_Count, ...] = ()
    last_cache_cores: _Count = 0

    @field_validator("target")
    @classmethod
    def _named(cls, target: dict[str, Any]) -> dict[str, Any]:
        """The id of a hardware holds these."""
        for key in ("mcpu", "arch"):
            if not isinstance(target.get(key, ""), str):
                raise ValueError(f"{key} is {target[key]!r}; it must be a name")
        mattr = target.get("mattr", ())
        if not isinstance(mattr, (list, tuple)) or not all(isinstance(one, str) for one in mattr):
            raise ValueError(f"mattr is {mattr!r}; it must be a list of names")
        return target

    @cached_property
    def hardware_id(self) -> str:
        """A readable, stable name, e.g. ``amd-epyc-f25m17-x86-64-v3-2c-1a2b3c4d``."""
        digest = content_id(self.kind, self.model, self.num_cores, self.target)[:8]
        features = "-".join(self.target.get("mattr", ()))
        isa = self.target.get("mcpu") or self.target.get("arch") or features or self.kind
        return f"{_slug(self.model)}-{_slug(isa)}-{self.num_cores}c-{digest}"

    @property
    def family(self) -> str:
        """What programs are alike for: ``"x86-64"``, ``"aarch64"``, ..., or the kind of a GPU."""
        if self.kind != "cpu":
            return self.kind
        machine = str(self.target.get("mtriple", "x86-64")).partition("-")[0]
        return "x86-64" if machine in ("x86", "x86_64") else machine

    @property
    def is_simulated(self) -> bool:
        """Whether what was measured on it are answers of a formula, see :meth:`simulated`."""
        return self.model.startswith(_SIMULATED)

    def simulated(self) -> Hardware:
        """Return the same as a device that is only simulated; its id says so."""
        return self.model_copy(update={"model": _SIMULATED + self.model})

    @classmethod
    def local(
        cls,
        *,
        mcpu: str | None = None,
        mattr: Sequence[str] = (),
        num_cores: int | None = None,
    ) -> Hardware:
        """Describe the CPU of this machine.

        Parameters
        ----------
        mcpu
            The LLVM processor or psABI level to generate code for. By default, or as
            ``"native"``, the best that this machine really runs, and the instructions for
            products of few bits that it has beside: LLVM's own guess goes by the processor's
            family, which a virtual machine may hide, as it may instructions.
        mattr
            Such instructions beside a processor that is named, e.g. ``["+avx512vnni"]``.
        num_cores
            Cores a program may use; all that this process may use by default.

        Raises
        ------
        TargetError
            This machine cannot execute code for ``mcpu`` and ``mattr``, or has not that many
            cores.
        """
        available = len(os.sched_getaffinity(0))
        num_cores = available if num_cores is None else num_cores
        if not 1 <= num_cores <= available:
            raise TargetError(f"num_cores is {num_cores}, but this machine has {available}")
        if mcpu in (None, "native"):
            mcpu = best_mcpu()
            further = further_instructions(mcpu)
        else:
            further = checked_attributes(mattr)
            mcpu = _checked_mcpu(mcpu, further)
        target: dict[str, Any] = {"kind": "llvm", "mcpu": mcpu, "num-cores": num_cores}
        if platform.machine() != "x86_64":  # By its triple TVM knows what else to make use of.
            target["mtriple"] = f"{platform.machine()}-linux-gnu"
        return cls(
            kind="cpu",
            model=cpu_model(),
            num_cores=num_cores,
            target=target | ({"mattr": further} if further else {}),
            vector_bits=vector_bits(mcpu),
            cache_bytes=cache_bytes(),
            last_cache_cores=last_cache_cores(),
        )

    @classmethod
    def aarch64(
        cls, features: Iterable[str] = (), *, mcpu: str | None = None, num_cores: int | None = None
    ) -> Hardware:
        """Describe an ARM64 processor that need not be here: enough for all but measuring.

        Parameters
        ----------
        features
            What it has beside NEON: ``"dotprod"``, ``"sve"``, ... as LLVM calls them; with
            ``"sve256"`` or ``"sve512"``, SVE of at least as many bits, vectors are SVE's. Programs
            compute something else where there are fewer.
        mcpu
            The processor by LLVM's name, such as ``"cortex-a76"``, which has features of its own.
        num_cores
            Cores a program may use; 4 if not given.

        Raises
        ------
        TargetError
            There is no such feature or processor.
        """
        has = set(features)
        known = (*_AARCH64_FEATURES, *_WIDE_SVE)
        if unknown := sorted(has.difference(known)):
            raise TargetError(
                f"aarch64 has no feature '{unknown[0]}'; it may have {', '.join(known)}"
            )
        bits = max((_WIDE_SVE.get(name, 128) for name in has), default=128)
        if bits > 128:
            has.add("sve")
        num_cores = _CORES_OF_A_BOARD if num_cores is None else num_cores
        if num_cores < 1:
            raise TargetError(f"num_cores is {num_cores}; it must be at least 1")
        target: dict[str, Any] = {"kind": "llvm", "mtriple": "aarch64-linux-gnu"}
        target["num-cores"] = num_cores
        if mcpu is not None:
            target["mcpu"] = mcpu
        if has or mcpu is None:
            named = ("neon", *(name for name in _AARCH64_FEATURES if name in has))
            target["mattr"] = [f"+{name}" for name in named]
        if bits > 128:
            target["cl-opt"] = [f"-aarch64-sve-vector-bits-min:uint={bits}"]
        make_target(target)
        return cls(
            kind="cpu", model="aarch64", num_cores=num_cores, target=target, vector_bits=bits
        )

    @classmethod
    def cuda(
        cls,
        arch: str,
        *,
        model: str = "CUDA",
        num_cores: int = 1,
        shared_bytes: int = 48 << 10,
        l2_bytes: int | None = None,
    ) -> Hardware:
        """Describe an NVIDIA GPU that need not be here: enough for sketches, features and builds.

        Parameters
        ----------
        arch
            The architecture to generate code for, e.g. ``"sm_80"``.
        model
            The GPU as it names itself.
        num_cores
            Its multiprocessors; 1 if unknown.
        shared_bytes
            Shared memory that a block may use, in bytes.
        l2_bytes
            Size of its L2 cache, if known.

        Raises
        ------
        TargetError
            ``arch`` is not the name of an architecture.
        """
        if not _CUDA_ARCH.fullmatch(arch):
            raise TargetError(f"'{arch}' is no CUDA architecture; give one like 'sm_80'")
        target = {
            "kind": "cuda",
            "arch": arch,
            "max_threads_per_block": 1024,
            "max_shared_memory_per_block": shared_bytes,
            "registers_per_block": 65536,
            "thread_warp_size": 32,
        }
        return cls(
            kind="cuda",
            model=model,
            num_cores=num_cores,
            target=target,
            vector_bits=128,
            cache_bytes=(shared_bytes,) if l2_bytes is None else (shared_bytes, l2_bytes),
        )

    @classmethod
    def local_cuda(cls) -> Hardware:
        """Describe the first NVIDIA GPU of this machine.

        Raises
        ------
        TargetError
            TVM finds none.
        """
        from costlib.tvm_compat import tvm
        from costlib.tvm_compat.cuda import why_no_runtime
        from costlib.tvm_compat.cuda_driver import driver_problem

        device = tvm.cuda(0)
        if not device.exist:
            reason = driver_problem() or why_no_runtime() or "TVM finds none"
            raise TargetError(
                f"no CUDA device here; measuring needs one ({reason}); "
                "for sketches, features and builds name an architecture: cuda:sm_80"
            )
        return cls.cuda(
            "sm_" + str(device.compute_version).replace(".", ""),
            model=str(device.device_name),
            num_cores=int(device.multi_processor_count),
            shared_bytes=int(device.max_shared_memory_per_block),
            l2_bytes=int(device.l2_cache_size_bytes),
        )

    def tvm_target(self) -> Any:
        """Return the ``tvm.target.Target``; raise :class:`TargetError` if TVM refuses it."""
        return make_target(self.target)


def find_hardware(
    spec: str = "cpu", *, mcpu: str | None = None, num_cores: int | None = None
) -> Hardware:
    """Return the hardware that a short name stands for.

    Parameters
    ----------
    spec
        ``"cpu"`` or ``"cuda"`` for what this machine has, ``"cuda:sm_80"`` or ``"aarch64+dotprod"``
        for a GPU or an ARM64 processor that need not be here, or a target as TVM writes it:
        ``"llvm -mcpu=x86-64-v3 -num-cores 4"``.
    mcpu, num_cores
        As for :meth:`Hardware.local` and :meth:`Hardware.aarch64`; for CPUs alone.

    Raises
    ------
    TargetError
        There is no such hardware.
    """
    if spec.split(maxsplit=1)[:1] in (["llvm"], ["cuda"]) and "-" in spec:
        return _from_target(spec)
    kind, _, arch = spec.partition(":")
    if spec == "cpu":
        return Hardware.local(mcpu=mcpu, num_cores=num_cores)
    if spec.partition("+")[0] == "aarch64":
        return Hardware.aarch64(spec.split("+")[1:], mcpu=mcpu, num_cores=num_cores)
    if kind != "cuda":
        raise TargetError(
            f"no hardware is called '{spec}'; use cpu, cuda, cuda:sm_80 or aarch64+dotprod"
        )
    if mcpu is not None or num_cores is not None:
        raise TargetError(f"processor and cores can be chosen for cpu, not for '{spec}'")
    return Hardware.local_cuda() if spec == "cuda" else Hardware.cuda(arch)


def _from_target(text: str) -> Hardware:
    """Read a target as TVM wrote it on one line: a kind, then ``-key=value`` or ``-key value``."""
    kind, *words = text.replace("=", " ").split()
    known = {"llvm": {"-mcpu", "-mattr", "-num-cores"}, "cuda": {"-arch"}}[kind]
    options = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not options.keys() <= known:
        raise TargetError(f"'{text}' is not understood; after {kind}: {', '.join(sorted(known))}")
    if kind == "cuda":
        return Hardware.cuda(options["-arch"])
    cores = options.get("-num-cores")
    if cores is not None and not cores.isdecimal():
        raise TargetError(f"-num-cores is '{cores}' in '{text}'; it must be a number")
    if "-mattr" in options and "-mcpu" not in options:
        raise TargetError(f"-mattr stands beside -mcpu, which '{text}' has not")
    return Hardware.local(
        mcpu=options.get("-mcpu"),
        mattr=[name for name in options.get("-mattr", "").split(",") if name],
        num_cores=None if cores is None else int(cores),
    )


def make_target(description: dict[str, Any]) -> Any:
    """Return a ``tvm.target.Target`` that this TVM can build for.

    Raises
    ------
    TargetError
        TVM does not know the target, or was built without its code generator.
    """
    from costlib.tvm_compat import load_intrinsics, tvm

    if any("amx" in str(name) for name in description.get("mattr", ())):
        load_intrinsics("amx")
    try:
        target = tvm.target.Target(description)
    except Exception as error:
        raise TargetError(f"TVM refuses the target {description}: {quoted(error)}") from None
    kind = target.kind.name
    if tvm.get_global_func(f"target.build.{kind}", allow_missing=True) is None:
        raise TargetError(
            f"this TVM was built without code generation for '{kind}'; use kind 'llvm' or 'cuda'"
        )
    mcpu = str(description.get("mcpu", ""))
    triple = str(description.get("mtriple") or tvm.target.codegen.llvm_get_system_triple())
    if kind == "llvm" and mcpu and not tvm.target.codegen.llvm_is_valid_cpu(mcpu, triple):
        raise TargetError(f"LLVM knows no processor '{mcpu}'; see `llc -mcpu=help` for its names")
    return target


def _checked_mcpu(mcpu: str, mattr: Sequence[str]) -> str:
    make_target({"kind": "llvm", "mcpu": mcpu})
    if platform.machine() == "x86_64" and not runs_here(mcpu, mattr):
        asked = " ".join([mcpu, *mattr])
        raise TargetError(
            f"this machine cannot execute code for '{asked}'; the best it runs is '{best_mcpu()}'"
        )
    return mcpu


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
