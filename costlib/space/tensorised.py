"""Sketches whose innermost loops are an instruction of the processor.

TVM has rules for products of 8 bits, and on a GPU of float16; those for bfloat16, for AMX's tiles
and for TF32 are ours. On a CPU they fit tasks whose weights are packed for the instruction, see
:mod:`costlib.workloads.packed_products`.
"""

from __future__ import annotations

from typing import Any

from costlib.processor import has_instructions
from costlib.tvm_compat import ms, tvm, wmma
from costlib.tvm_compat.api import derived_object
from costlib.tvm_compat.intrinsics import ARM_USDOT, AVX512, BF16, VNNI
from costlib.tvm_compat.tiles import TILES
from costlib.workloads.half_precision import TF32, has_tf32
from costlib.workloads.task import Task

INTRINSIC = "meta_schedule.auto_tensorize"
"""The annotation of a block that is to become an instruction."""

_INTRINSIC_BEFORE = "meta_schedule.auto_tensorize_init"
"""The same of the block that sets its sums to zero."""

_TILED = "meta_schedule.tiling_structure"
_STRUCTURE = "SSRSRS"
"""Of loops: spatial ones and those of reductions, from the outermost to the innermost."""

_LARGEST_INNERMOST = 8
"""Of the innermost tile of an axis, in sums."""

_tile = tvm.s_tir.schedule.transform.tile_with_tensor_intrin


def rules_beside(rules: list[Any], task: Task) -> list[Any]:
    """Add rules to TVM's for products that it has none for; return the same where there are none.

    These are tensor cores' of a GPU; AMX's, where it is asked for beside the processor;
    AVX512-BF16's; ARM's for unsigned bytes; and for bytes AVX-512's, in place of TVM's own, which
    take tiles of sums that fit no registers.
    """
    target = task.target
    dtypes = {dtype for dtype, _ in task.arguments}
    if has_tf32(target):
        is_tf32 = TF32 in (task.mod["main"].attrs or {})
        multiplied = "bfloat16" if "bfloat16" in dtypes else "float32" if is_tf32 else None
        if multiplied is None:
            return rules
        groups = [wmma.group(multiplied, transposed=either) for either in (False, True)]
        return [_on_tensor_cores(groups), *rules]
    ours = [
        _OnTiles(tiles.name, tiles.zero)
        for tiles in TILES
        if {tiles.left, tiles.right} <= dtypes and f"+{tiles.feature}" in target.get("mattr", ())
    ]
    if "bfloat16" in dtypes and has_instructions(target, "avx512bf16"):
        ours.append(_of_vectors(BF16))
    if "int8" in dtypes and has_instructions(target, "avx512bw"):
        has_vnni = has_instructions(target, "avx512vnni")
        ours.append(_of_vectors(VNNI if has_vnni else AVX512))
    if "uint8" in dtypes and has_instructions(target, "i8mm"):
        ours.append(_of_vectors(ARM_USDOT))
    if not ours:
        return rules
    names = [type(rule).__name__ for rule in rules]
    place = min(names.index(name) for name in names if name.startswith("MultiLevelTiling"))
    theirs = [r for r in rules[place:] if not type(r).__name__.endswith("WithIntrin")]
    return [*rules[:place], *ours, *theirs]


def _of_vectors(name: str) -> Any:
    return ms.schedule_rule.MultiLevelTilingWithIntrin(name, **_tiling(_LARGEST_INNERMOST))


def _tiling(largest: int) -> dict[str, Any]:
    return {
        "structure": _STRUCTURE,
        "tile_binds": None,
        "max_innermost_factor": largest,
        "vector_load_lens": None,
        "reuse_read": None,
        "reuse_write": ms.schedule_rule.ReuseType(req="may", levels=[1, 2], scope="global"),
    }


@derived_object
class _OnTiles(ms.schedule_rule.PyScheduleRule):  # type: ignore[misc]
    """Tiles a product around an intrinsic whose operands TVM's own rule does not recognise.

    That takes a variable for each axis of an operand, where rows of tiles have two.
    """

    def __init__(self, name: str, zero: str) -> None:
        super().__init__()
        self.name, self.zero = name, zero
        self.tiling = ms.schedule_rule.MultiLevelTiling(**_tiling(64))

    def _initialize_with_tune_context(self, context: Any) -> None:
        self.tiling._initialize_with_tune_context(context)

    def apply(self, schedule: Any, block: Any) -> list[Any]:
        """Return the sketches of a block; the schedule as it is if the intrinsic does not fit."""
        tried = schedule.copy()
        try:
            loop = _tile(tried, block, self.name)
            if loop is None:
                return [schedule]
            tried.decompose_reduction(block, tried.get_loops(block)[0])
            tried.tensorize(loop, self.name)
        except Exception:  # Of several kinds: whatever it is, the intrinsic does not fit.
            return [schedule]
        tiled = schedule.copy()
        whole = tiled.blockize(_tile(tiled, block, self.name))
        tiled.annotate(whole, INTRINSIC, self.name)
        tiled.annotate(whole, _INTRINSIC_BEFORE, self.zero)
        tiled.annotate(block, _TILED, _STRUCTURE)  # Other rules leave such a block alone.
        return list(self.tiling.apply(tiled, whole))

    def clone(self) -> Any:
        """Return another one."""
        return _OnTiles(self.name, self.zero)


def _on_tensor_cores(groups: list[dict[str, str]]) -> Any:
    """Tile a product as TVM's own rules for tensor cores do."""
    reuse = ms.schedule_rule.ReuseType
    return ms.schedule_rule.MultiLevelTilingTensorCore(
        intrin_groups=groups,
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 4, 8],  # TVM writes no code for an odd number of bfloat16.
        reuse_read=reuse(req="must", levels=[4], scope=wmma.SHARED),
        reuse_write=reuse(req="must", levels=[2], scope=wmma.SHARED),
        use_software_pipeline=False,
    )
