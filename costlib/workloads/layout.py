"""Networks in layouts that CPUs often like better than the NCHW of PyTorch.

``+nhwc`` has channels last, in 1-D and 3-D as well; ``+nchw8c`` has blocks of 8 channels, as oneDNN
does. Convolutions, and with them everything between them that does not care, are converted; what
comes in and goes out keeps its layout. Both may be followed by ``+winograd``, see
:mod:`costlib.workloads.winograd`.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from costlib.errors import UnsupportedModelError
from costlib.hardware import Hardware
from costlib.tvm_compat import relax, te, topi, tvm
from costlib.workloads.channels_last import channels_stay_last
from costlib.workloads.folding import fold_constants, is_call, rewritten
from costlib.workloads.network import Network
from costlib.workloads.padding_inside import with_padding_inside
from costlib.workloads.phased import LAYOUTS as PHASED
from costlib.workloads.phased import is_phased
from costlib.workloads.transposed import without_transposed_convolutions
from costlib.workloads.unmoved import without_idle_moves
from costlib.workloads.winograd import WINOGRAD, by_winograd

CHANNELS_LAST = "nhwc"
_CONV1D, _CONV2D, _CONV3D = (f"relax.nn.conv{dimensions}d" for dimensions in (1, 2, 3))
_FIRST = {_CONV1D: "NCW", _CONV2D: "NCHW", _CONV3D: "NCDHW"}


def best_block(hardware: Hardware) -> str:
    """Return the layout with blocks of as many channels as a vector holds."""
    return f"nchw{hardware.vector_bits // 32}c"


def in_layout(network: Network, layout: str) -> Network:
    """Convert a network to ``"nhwc"``, ``"nchw8c"`` or the like, or to ``"winograd"``.

    Its name says so.

    Raises
    ------
    UnsupportedModelError
        TVM cannot convert it: a layer norm over channels in blocks, for one. Or there is nothing
        in it for Winograd's algorithm.
    """
    name = f"{network.name}+{layout}"
    if layout == WINOGRAD:
        changed, kinds = by_winograd(network.mod)
        if not kinds:
            raise UnsupportedModelError(
                f"{name}: no 3 x 3 convolution in it has channels last or in blocks, a stride of 1 "
                f"and less work by Winograd's algorithm; name a layout first: +nhwc+{WINOGRAD}"
            )
        return replace(network, name=name, mod=changed)
    try:
        return replace(network, name=name, mod=converted(network.mod, layout))
    except Exception:
        raise UnsupportedModelError(
            f"{name}: TVM cannot convert this network to {layout}; leave the layout as it is "
            "or try another"
        ) from None


def has_channels_first(mod: Any) -> bool:
    """Whether a Relax module has convolutions in NCHW, NCW or NCDHW."""
    return bool(_channels_first(mod))


def has_channels_first_alone(mod: Any) -> bool:
    """Whether a Relax module has convolutions, none of them in a layout that was chosen for it."""
    found = _layouts_of_convolutions(mod)
    return bool(found) and all(layout == _FIRST[name] for name, layout in found)


def other_layouts(mod: Any, hardware: Hardware) -> list[str]:
    """Return the layouts that its convolutions may be converted to; blocks are for 2-D alone."""
    found = _channels_first(mod)
    if _CONV2D in found:
        return [CHANNELS_LAST, best_block(hardware)]
    return [CHANNELS_LAST] if found else []


def _channels_first(mod: Any) -> set[str]:
    return {name for name, layout in _layouts_of_convolutions(mod) if layout == _FIRST[name]}


def _layouts_of_convolutions(mod: Any) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()

    def visit(node: Any) -> None:
        name = getattr(getattr(node, "op", None), "name", "").removesuffix("_transpose")
        if name in _FIRST:
            found.add((name, str(node.attrs.data_layout)))

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function.body, visit)
    return found


def converted(mod: Any, layout: str, *, phased: bool = True) -> Any:
    """Convert the convolutions of a Relax module with parameters bound as constants.

    Those whose channels do not fill the blocks stay as they are. Transposed ones get channels last
    if they can be computed by phases, and that is wanted; others with a stride are replaced.
    """
    transform = relax.transform
    phased = phased and layout == CHANNELS_LAST

    def layouts(call: Any) -> dict[str, list[str]]:
        if call.op.name not in PHASED:
            return _layouts(layout)
        return PHASED if phased and is_phased(call, call.args[1]) else {}

    passes = [
        transform.Normalize(),
        transform.ConvertLayout({}, layouts),
        transform.Normalize(),
        transform.EliminateCommonSubexpr(),  # Each reader of a tensor converts it.
        transform.CanonicalizeBindings(),
        transform.DeadCodeElimination(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        without_clip = rewritten(decomposed(mod, phased=phased), lambda _: _ClipRewriter())
        changed = tvm.transform.Sequential(passes)(without_clip)
        if layout == CHANNELS_LAST:  # TVM carries a layout over to some operators alone.
            clean = tvm.transform.Sequential(passes[-2:])
            ranks = {len(_FIRST[name]) for name, _ in _layouts_of_convolutions(mod)}
            changed = without_idle_moves(clean(channels_stay_last(changed, ranks)))
        return changed


def decomposed(mod: Any, *, phased: bool = False) -> Any:
    """Fold constants, and write what TVM has no good program for as simpler operators.

    Transposed convolutions that can be computed by phases may be left.
    """
    passes = [
        relax.transform.CanonicalizeBindings(),
        relax.transform.DeadCodeElimination(),
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
    ]
    leave = is_phased if phased else lambda _call, _weight: False
    folded = without_transposed_convolutions(with_padding_inside(fold_constants(mod)), leave)
    return tvm.transform.Sequential(passes)(folded)


def legalize_conv2d(builder: Any, call: Any) -> Any:
    """Lower a convolution in blocks, which TVM does not; any other as TVM does."""
    if len(str(call.attrs.data_layout)) == len("NCHW"):
        return tvm.ir.Op.get(_CONV2D).get_attr("FLegalize")(builder, call)
    convolve = functools.partial(_blocked_conv2d, call.attrs)
    return builder.call_te(convolve, *call.args, primfunc_name_hint="conv2d")


def _layouts(layout: str) -> dict[str, list[str]]:
    """Return the layouts of data and kernel of what is converted."""
    if layout == CHANNELS_LAST:
        return {
            _CONV1D: ["NWC", "OWI"],
            _CONV2D: ["NHWC", "OHWI"],
            _CONV3D: ["NDHWC", "ODHWI"],
        }
    block = layout.removeprefix("nchw").removesuffix("c")
    return {_CONV2D: [f"NCHW{block}c", f"OIHW{block}i{block}o"]}


def _blocked_conv2d(attrs: Any, data: Any, kernel: Any) -> Any:
    """Convolve `n x C/b x h x w x b` with `O/b x I/b x kh x kw x b x b`."""
    count, _, height, width, _ = map(int, data.shape)
    out_chunks, in_chunks, kernel_height, kernel_width, in_block, block = map(int, kernel.shape)
    (step_y, step_x), (apart_y, apart_x) = map(int, attrs.strides), map(int, attrs.dilation)
    top, left, bottom, right = map(int, attrs.padding)
    if any((top, left, bottom, right)):
        before, after = [0, 0, top, left, 0], [0, 0, bottom, right, 0]
        data = topi.nn.pad(data, before, after, name="pad_temp")
    out_height = (height + top + bottom - apart_y * (kernel_height - 1) - 1) // step_y + 1
    out_width = (width + left + right - apart_x * (kernel_width - 1) - 1) // step_x + 1
    chunk = te.reduce_axis((0, in_chunks), name="ic_chunk")
    y = te.reduce_axis((0, kernel_height), name="ky")
    x = te.reduce_axis((0, kernel_width), name="kx")
    inner = te.reduce_axis((0, in_block), name="ic_block")

    def value(n: Any, out_chunk: Any, i: Any, j: Any, out: Any) -> Any:
        first = 0
        if attrs.groups > 1:
            group = (out_chunk * block + out) // (out_chunks * block // int(attrs.groups))
            first = group * in_chunks
        read = data[n, first + chunk, i * step_y + y * apart_y, j * step_x + x * apart_x, inner]
        return te.sum(read * kernel[out_chunk, chunk, y, x, inner, out], axis=[chunk, y, x, inner])

    shape = (count, out_chunks, out_height, out_width, block)
    return te.compute(shape, value, name="conv2d_nchwc")


@relax.expr_functor.mutator
class _ClipRewriter(relax.PyExprMutator):  # type: ignore[misc]
    """Writes clips as maximum and minimum, which TVM knows to carry over to another layout."""

    def visit_call_(self, call: Any) -> Any:
        call = super().visit_call_(call)
        if not is_call(call, "relax.clip"):
            return call
        x, low, high = call.args
        dtype = str(x.ty.dtype)
        for operator, bound in ((relax.op.maximum, low), (relax.op.minimum, high)):
            x = self.builder_.normalize(operator(x, relax.const(float(bound.value), dtype)))
        return x
