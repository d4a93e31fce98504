"""Small calls of PyTorch's operators: each with what it is of, and inputs that can tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from costlib.workloads.torch_ties import TiesInOrder


class Case(NamedTuple):
    """A function of tensors; ``operator`` is ATen's name of what it is a case of.

    PyTorch's own result is compared with in double precision where it has lost digits itself.
    """

    operator: str
    function: Callable[..., Any]
    inputs: tuple[torch.Tensor, ...]
    doubled: bool = False

    def expected(self) -> Any:
        """Return what PyTorch computes."""
        inputs = [x.double() for x in self.inputs] if self.doubled else self.inputs
        with torch.no_grad(), TiesInOrder():
            outputs = self.function(*inputs)
        return outputs.float() if self.doubled else outputs


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=_GENERATOR)


_GENERATOR = torch.Generator().manual_seed(0)
INTEGERS = torch.arange(-4, 8).reshape(3, 4)
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 1e-6])
MASK = torch.tensor([[True, False, True, False]] * 3)


def layer(module: nn.Module) -> Callable[..., Any]:
    return module.eval().requires_grad_(False)


def unary() -> list[Case]:
    names = (
        "acos acosh asin asinh atan atanh cos cosh erf exp expm1 exp2 log log2 log10 log1p rsqrt "
        "sigmoid sin sinh sqrt tan tanh reciprocal abs neg sign ceil floor trunc round relu isnan "
        "isinf isfinite signbit"
    )
    found = [Case(name, getattr(torch, name), (SPECIAL,)) for name in names.split()]
    found += [
        Case(name, getattr(torch, name), (INTEGERS,)) for name in ("exp", "abs", "sign", "floor")
    ]
    functions = "gelu silu leaky_relu elu selu hardtanh hardswish mish softplus celu relu6"
    found += [Case(name, getattr(F, name), (normal(3, 4),)) for name in functions.split()]
    return [
        *found,
        Case("gelu", lambda x: F.gelu(x, approximate="tanh"), (normal(3, 4),)),
        Case("elu", F.selu, (normal(3, 4),)),
        Case("round", lambda x: torch.round(x, decimals=1), (normal(3, 4),)),
        Case("clamp", lambda x: x.clamp(min=1), (INTEGERS,)),
        Case("clamp", lambda x: x.clamp(max=1), (SPECIAL,)),
        Case("clamp", lambda x, y: x.clamp(min=y), (normal(3, 4), normal(4))),
        Case("bitwise_not", torch.bitwise_not, (INTEGERS,)),
        Case("bitwise_not", torch.bitwise_not, (MASK,)),
        Case("logical_not", torch.logical_not, (INTEGERS,)),
        Case("_to_copy", lambda x: x.bool(), (normal(3, 4) * 0.3,)),
        Case("_to_copy", lambda x: x.half(), (normal(3, 4),)),
        Case("signbit", torch.signbit, (MASK,)),
        Case("erfc", lambda x: (torch.erfc(x), torch.lgamma(x)), (normal(3, 4) * 2,)),
        Case(
            "full", lambda x: x.double() + torch.full_like(x, 0.1, dtype=torch.float64), (SPECIAL,)
        ),
        Case("nan_to_num", torch.nan_to_num, (SPECIAL,)),
    ]


def binary() -> list[Case]:
    x, y = normal(3, 4), normal(4) + 3
    integers = (INTEGERS, torch.tensor([3, -2, 5, 1]))
    found = []
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "pow"):
        found.append(Case(name, getattr(torch, name), (x.abs() if name == "pow" else x, y)))
        if name != "pow":
            found.append(Case(name, getattr(torch, name), integers))
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "atan2", "hypot", "copysign", "logaddexp"):
        found.append(Case(name, getattr(torch, name), (x, y)))
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        found.append(Case(name, getattr(torch, name), integers))
        found.append(Case(name, getattr(torch, name), (MASK, ~MASK)))
    return [
        *found,
        Case("mul", lambda x: (x * 0.5, x + 0.5, 0.5 - x, x / 2), (INTEGERS,)),
        Case("ge", lambda x: (x >= 2.5, x == 2.5, x < -0.5), (INTEGERS,)),
        Case("add", lambda x, y: torch.add(x, y, alpha=2), (x, y)),
        Case("rsub", lambda x: 1.5 - x, (x,)),
        Case("ne", lambda x: (x.ne(x), x.eq(x), x.ne(x.flip(0)), ~x.lt(x.flip(0))), (SPECIAL,)),
        Case("_to_copy", lambda x: x.bool(), (SPECIAL,)),
        Case("mul", lambda x: x * 1e-4, (x.half(),)),
        Case("add", lambda x, y: x + y, (INTEGERS, MASK)),
        Case("add", lambda x, y: x + y, (x, torch.tensor(2, dtype=torch.int64))),
        Case("maximum", torch.maximum, (SPECIAL, SPECIAL.flip(0))),
        Case("div", lambda x: torch.div(x, 3, rounding_mode="floor"), (INTEGERS,)),
        Case("div", lambda x: torch.div(x, 3, rounding_mode="trunc"), (INTEGERS,)),
        Case("div", lambda x: torch.div(x, 0.3, rounding_mode="floor"), (x,)),
        Case("pow", lambda x: (x**2, x**3, x**0.5, x**-1, 2**x), (x.abs(),)),
        Case("pow", lambda x: (x**2, x**3), (INTEGERS,)),
        Case("where", lambda m, x: torch.where(m, x, 0), (MASK, x)),
        Case("prelu", lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])), (x,)),
        Case("fmax", lambda x, y: (torch.fmax(x, y), torch.fmin(x, y)), (SPECIAL, SPECIAL.flip(0))),
        Case("fmin", torch.fmin, integers),
        Case("lerp", lambda x, y: torch.lerp(x, y, 0.3), (x, y)),
    ]


def reductions() -> list[Case]:
    x = normal(2, 3, 4)
    hole = x.index_fill(2, torch.tensor([1]), float("nan"))
    low = torch.full((2, 4), float("-inf"))
    found = []
    for name in ("sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp"):
        function = getattr(torch, name)
        found.append(Case(name, partial(function, dim=1), (x,)))
        found.append(Case(name, partial(function, dim=-1, keepdim=True), (x,)))
    return [
        *found,
        Case("sum", torch.sum, (INTEGERS,)),
        Case("sum", lambda x: x.sum(1), (MASK,)),
        Case("amax", lambda x: (x.amax(1), x.amin(1)), (hole,)),
        Case("amax", lambda x: (x.amax(1), x.softmax(1), x.max(1).values), (low,)),
        Case("max", lambda x: x.max(1), (x,)),
        Case("min", lambda x: x.min(0), (x,)),
        Case("argmax", lambda x: (x.argmax(), x.argmax(1), x.argmin(0, keepdim=True)), (x,)),
        Case("argmax", lambda x: (x.argmax(1), x.argmin(2), x.max(1), x.min(2)), (hole,)),
        Case("argmax", lambda x: (x.argmax(1), x.argmin(2), x.max(2), x.min(1)), (hole,)),
        Case("argmax", lambda x: (x.argmax(1), x.argmin(1), x.min(1, keepdim=True)), (low,)),
        Case("argmax", lambda x: (x.argmax(), x.argmin(), x.half().argmax()), (SPECIAL,)),
        *[
            Case("argmax", lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(0)), (worst,))
            for worst in (
                torch.tensor([[0, 0, 0], [255, 255, 255], [1, 2, 2]], dtype=torch.uint8),
                torch.tensor([[-(2**63)] * 3, [2**63 - 1] * 3, [2, 1, 1]]),
            )
        ],
        Case("any", lambda x: (x.any(1), x.all(0), x.any()), (MASK,)),
        Case("var", lambda x: (x.var(), x.var(1, correction=0)), (x * 0.01 + 100,)),
        Case("_softmax", lambda x: (x.softmax(1), x.log_softmax(-1)), (x * 5,)),
        Case("cumsum", lambda x: (x.cumsum(1), x.cumprod(0)), (x,)),
        Case("cumsum", lambda x: x.cumsum(1), (MASK,)),
        Case("cummax", lambda x: (*x.cummax(1), *x.cummin(2)), (x,)),
        Case("cummax", lambda x: (*x.round().cummax(1), *x.round().cummin(2)), (hole,)),
        Case("cummin", lambda x: (*x.cummin(0), *x.cummax(1)), (INTEGERS % 3,)),
        Case("var_mean", lambda x: (x.var(False), *torch.var_mean(x, False)), (x,)),
        Case("_cdist_forward", lambda x: (torch.cdist(x, x[0]), torch.cdist(x, x, 1.0)), (x,)),
        Case("sort", lambda x: x.sort(1, descending=True), (x,)),
        Case("argsort", lambda x: x.argsort(-1), (x,)),
        Case("sort", lambda x: (*x.sort(2), *x.half().sort(1, descending=True)), (hole,)),
        Case("sort", lambda x: (*x.sort(), *x.double().sort(descending=True)), (SPECIAL,)),
        Case("argsort", lambda x: (x.argsort(1), x.double().msort()), (hole,)),
        Case("topk", lambda x: (*x.topk(3), *x.topk(3, largest=False)), (SPECIAL,)),
        Case("kthvalue", lambda x: (*x.kthvalue(3, 1), *x.kthvalue(2)), (hole,)),
        Case("topk", lambda x: x.topk(2, 1), (x,)),
        Case("topk", lambda x: x.topk(2, 2, largest=False), (x,)),
        Case("median", lambda x: (x.median(), x.median(1)), (x,)),
        Case("slice", lambda x: (x[:0] + 1, x[:0].sum(), torch.cat([x, x[:0] * 2])), (x,)),
        Case("median", lambda x: (x.median(), *x.median(0), *x[0].median(0)), (SPECIAL,)),
        Case("nanmedian", lambda x: (x.nanmedian(), *x.nanmedian(1)), (hole,)),
        Case("nanmedian", lambda x: (*x.nanmedian(2), *x[:, 1].nanmedian(0, True)), (hole,)),
        Case("nanmedian", lambda x: (x.nanmedian(), *x[0].nanmedian(0)), (SPECIAL,)),
        Case("nanmedian", lambda x: x.nanmedian(0), (INTEGERS,)),
        Case("mode", lambda x: (*x.mode(1), *x.mode(0, True), *x[0].mode()), (INTEGERS % 3,)),
        Case("mode", lambda x: (*x.round().mode(1), *x[:, 1].mode(0)), (hole,)),
        Case("kthvalue", lambda x: x.kthvalue(2, 2), (x,)),
        Case("linalg_vector_norm", lambda x: (x.norm(), x.norm(1, 2), x.norm(3, 1)), (x,)),
    ]


def doubled_if_sizes_agree(x: torch.Tensor) -> torch.Tensor:
    """Check a size that is read from a constant, as detectors do with those of their levels."""
    rows = torch.tensor([2, 2]).sum().item()
    torch._check(torch.sym_max(rows, 2) * 6 == x.numel())
    return x * 2


def shapes() -> list[Case]:
    x = normal(2, 3, 4)
    image = normal(1, 4, 6, 6)
    return [
        Case("view", lambda x: (x.reshape(6, 4), x.flatten(1), x.unsqueeze(1), x[:, :1]), (x,)),
        Case("squeeze", lambda x: x[:, :1].squeeze(1), (x,)),
        Case("expand", lambda x: x[:, :1].expand(-1, 5, -1), (x,)),
        Case("permute", lambda x: (x.permute(2, 0, 1), x.transpose(0, 2), x.mT), (x,)),
        Case("cat", lambda x: (torch.cat([x, x], 1), torch.stack([x, x], -1)), (x,)),
        Case("cat", lambda x: torch.cat([x, torch.zeros(2, 0, 4)], 1), (x,)),
        Case("slice", lambda x: (x[:, 1:], x[..., ::2], x[:, -2:], x[:, 5:]), (x,)),
        Case("select", lambda x: (x[:, -1], x[0], x[..., 1]), (x,)),
        Case("split", lambda x: (*x.split(2, 2), *x.chunk(2, 1), *x.unbind(1)), (x,)),
        Case("flip", lambda x: (x.flip(0, 2), x.roll(1, 1), x.roll((1, 2), (0, 2))), (x,)),
        Case("repeat", lambda x: (x.repeat(2, 1, 2), x.repeat_interleave(2, 1)), (x,)),
        Case(
            "constant_pad_nd", lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, -1, 1, 0), value=3)), (x,)
        ),
        Case("constant_pad_nd", lambda x: F.pad(x, (1, 1), value=float("-inf")), (x,)),
        Case("pad", lambda x: F.pad(x, (2, 1), mode="reflect"), (x,)),
        Case("pad", lambda x: F.pad(x, (2, 1), mode="replicate"), (x,)),
        Case("pad", lambda x: F.pad(x, (2, 1), mode="circular"), (x,)),
        Case("tril", lambda x: (x.tril(), x.triu(1), x.tril(-1)), (x,)),
        Case("diagonal", lambda x: (x.diagonal(0, 1, 2), x.diagonal(-1, 1, 2)), (x,)),
        Case("full", lambda x: x + torch.full((4,), float("-inf")), (x,)),
        Case("unfold", lambda x: x.unfold(2, 2, 1), (x,)),
        Case("as_strided", lambda x: torch.as_strided(x, (2, 2), (3, 1), 1), (x,)),
        Case("pixel_shuffle", lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2)), (image,)),
        Case("im2col", lambda x: F.unfold(x, 3, padding=1), (image,)),
        Case("one_hot", lambda x: F.one_hot(x, 5), (torch.tensor([0, 3, 1]),)),
        Case("einsum", lambda x: torch.einsum("bij,bkj->bik", x, x), (x,)),
        Case("_local_scalar_dense", doubled_if_sizes_agree, (x,)),
        Case("meshgrid", lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"), (x,)),
    ]


def indexing() -> list[Case]:
    x = normal(3, 5, 6)
    i, j = torch.tensor([0, 1, 2, 4, -1]), torch.tensor([5, 3, 1, 0, -6])
    rows = torch.tensor([[0, 2], [1, -1]])
    places = torch.tensor([[0, 1, 0], [2, 2, 1]])
    return [
        Case("index", lambda x: x[:, torch.tensor([0, -1, -2])], (x,)),
        Case("index", lambda x, i: (x[:, i], x[:, :, i]), (x, i)),
        Case("index", lambda x, i, j: (x[:, i, j], x[0, i], x[:, i][:, :, j]), (x, i, j)),
        Case("index", lambda x, r, i: (x[r], x[r[0], :, r[1]]), (x, rows, i)),
        Case("index", lambda x, i, j: (x[:, i[:, None], j], x[0][i[:, None], j[None]]), (x, i, j)),
        Case("index", lambda x: x[torch.tensor([[0], [-1]]), torch.tensor([1, -1, 0])], (x,)),
        Case("index_select", lambda x, i: x.index_select(1, i.abs()), (x, i)),
        Case("gather", lambda x, p: x[:2, :3, 0].gather(1, p), (x, places)),
        Case("embedding", lambda i: F.embedding(i, torch.arange(12.0).reshape(4, 3)), (places,)),
        Case("index_put", lambda x, i: x.index_put((torch.tensor([1]), i[:1]), x[0, :1]), (x, i)),
        Case("index_put", lambda x, i: x.index_put((i[:2],), x[:2], accumulate=True), (x, i)),
        Case("index_put", lambda x: x.masked_fill(x > 0.5, -1.0), (x,)),
        Case("index_add", lambda x, i: x.index_add(1, i[:4], x[:, :4]), (x, i)),
        Case("scatter", lambda x, p: x[:2, :3, 0].scatter(1, p, x[:2, :3, 1]), (x, places)),
        Case("scatter", lambda x, p: x[:2, :3, 0].scatter(1, p, 7.0), (x, places)),
        Case("scatter_add", lambda x, p: x[:2, :3, 0].scatter_add(1, p, x[:2, :3, 1]), (x, places)),
        Case(
            "scatter_reduce",
            lambda x, p: x[:2, :3, 0].scatter_reduce(1, p, x[:2, :3, 1], "amax"),
            (x, places),
        ),
        Case(
            "scatter_reduce",
            lambda x, p: tuple(
                x[:2, :3, 0].scatter_reduce(1, p, x[:2, :3, 1], kind, include_self=itself)
                for kind in ("mean", "sum", "prod", "amin")
                for itself in (True, False)
            ),
            (x, places),
        ),
        Case(
            "_embedding_bag",
            lambda x, i, o: tuple(
                F.embedding_bag(i, x[:, 0], o, mode=mode) for mode in ("sum", "mean", "max")
            ),
            (x, torch.tensor([0, 2, 2, 1, 0]), torch.tensor([0, 2, 2])),
        ),
        Case("slice_scatter", lambda x: x.slice_scatter(x[:, :2], 1, 2, 4), (x,)),
        Case("select_scatter", lambda x: x.select_scatter(x[:, 0], 1, -1), (x,)),
        Case("diagonal_scatter", lambda x: x.diagonal_scatter(x[:, 0, :5], 1, 1, 2), (x,)),
        Case(
            "as_strided_scatter", lambda x: x.as_strided_scatter(x[0, :2], (2, 6), (3, 2), 1), (x,)
        ),
        Case("masked_scatter", lambda x: x.masked_scatter(x[0] > 0.2, x.flip(0)), (x,)),
        Case("searchsorted", lambda x: torch.searchsorted(x.sort().values, x, right=True), (x,)),
        Case("searchsorted", lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0])), (SPECIAL,)),
        Case("searchsorted", lambda x: torch.isin(x, torch.arange(40)), (INTEGERS,)),
        Case("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), (x,)),
        Case("take_along_dim", lambda x, p: torch.take_along_dim(x[:2, :3, 0], p, 1), (x, places)),
    ]


def turned(x: torch.Tensor, angles: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Turn pairs of numbers by angles, as rotary embeddings do."""
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    back = torch.stack([(pairs / turns).real, (1 - pairs).imag], -1)
    return (
        torch.view_as_real(pairs * turns).flatten(-2),
        (pairs.conj() * (pairs + turns)).imag,
        torch.view_as_real(pairs[:, 1:].sum(1)),
        pairs.abs(),
        pairs.angle(),
        back,
    )


def transformed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Transform there and back, from and to real numbers, of even and odd length."""
    full = torch.fft.fftn(x, dim=(1, 2))
    return (
        torch.view_as_real(full),
        torch.fft.ifft(full, dim=1).imag,
        torch.view_as_real(torch.fft.rfft(x, norm="ortho")),
        torch.fft.irfft(torch.fft.rfft(x, dim=1), n=x.shape[1], dim=1),
        torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[1:]),
    )


def products() -> list[Case]:
    x, y = normal(2, 3, 4), normal(2, 4, 5)
    large = torch.full((2, 3), 2**24 + 1)
    half = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2))
    image = normal(1, 4, 6, 7)
    return [
        Case("polar", turned, (normal(2, 3, 4), normal(3, 2))),
        Case("_fft_c2c", transformed, (normal(2, 5, 6),)),
        Case("linear", layer(nn.Linear(4, 3)), (x,)),
        Case("linear", layer(half.half()), (x.half(),)),
        Case("linear", layer(nn.Linear(4, 3).bfloat16()), (x.bfloat16(),)),
        Case("matmul", lambda x, y: (x @ y, x[0] @ y[0], x @ y[0, :, 0]), (x, y)),
        Case("matmul", lambda x: x @ x.T, (large,)),
        Case("matmul", lambda x: x @ x.mT, (x.double(),)),
        Case("bmm", torch.bmm, (x, y)),
        Case(
            "addmm",
            lambda b, x, y: torch.addmm(b, x[0], y[0], beta=2, alpha=0.5),
            (normal(5), x, y),
        ),
        Case("baddbmm", lambda x, y: torch.baddbmm(torch.ones(2, 3, 5), x, y, beta=2), (x, y)),
        Case("convolution", layer(nn.Conv1d(3, 4, 2, padding=1)), (x,)),
        Case("convolution", layer(nn.Conv2d(4, 4, 3, 2, 1, groups=2)), (image,)),
        Case("convolution", layer(nn.Conv2d(4, 4, (3, 2), dilation=2).double()), (image.double(),)),
        Case("convolution", layer(nn.Conv2d(4, 2, 3).half()), (image.half(),)),
        Case("convolution", layer(nn.Conv3d(2, 3, 2)), (normal(1, 2, 4, 4, 4),)),
        Case("convolution", layer(nn.ConvTranspose1d(3, 2, 3, 2, 1, 1)), (x,)),
        Case("convolution", layer(nn.ConvTranspose2d(4, 4, 3, 2, groups=2)), (image,)),
        Case("convolution", layer(nn.ConvTranspose3d(2, 2, 3, 2)), (normal(1, 2, 3, 3, 3),)),
        Case(
            "scaled_dot_product_attention",
            lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
            (normal(1, 2, 3, 4), torch.ones(3, 3, dtype=torch.bool).tril()),
        ),
        Case(
            "scaled_dot_product_attention",
            lambda q: F.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True),
            (normal(1, 2, 3, 4),),
        ),
        Case("_trilinear", layer(nn.Bilinear(4, 4, 2)), (x, normal(2, 3, 4))),
        Case("lstm", layer(nn.LSTM(4, 3, bidirectional=True, batch_first=True)), (x,)),
        Case("gru", layer(nn.GRU(4, 3, num_layers=2)), (x,)),
        Case("rnn_tanh", layer(nn.RNN(4, 3)), (x,)),
    ]


def images() -> list[Case]:
    image = normal(1, 3, 7, 9)
    hole = image.index_fill(2, torch.tensor([3]), float("nan"))
    far = image * 0.01 + 100
    return [
        Case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (image,)),
        Case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (image,)),
        Case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, divisor_override=5), (image,)),
        Case("avg_pool2d", lambda x: F.avg_pool2d(x, 20, ceil_mode=True, padding=10), (image,)),
        Case("max_pool2d_with_indices", lambda x: F.max_pool2d(x, 3, 2, 1), (hole,)),
        Case(
            "max_pool2d_with_indices",
            lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True),
            (image,),
        ),
        Case("max_pool2d_with_indices", lambda x: F.max_pool2d(x, 2, 2, dilation=2), (image,)),
        Case("max_pool1d", lambda x: F.max_pool1d(x[0], 3, 2), (image,)),
        Case("avg_pool1d", lambda x: F.avg_pool1d(x[0], 3, 2), (image,)),
        Case("_adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), (image,)),
        Case("_adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (7, 3)), (image,)),
        Case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4)), (image,)),
        Case(
            "adaptive_max_pool2d",
            lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True),
            (image,),
        ),
        Case("upsample_nearest2d", lambda x: F.interpolate(x, size=(10, 13)), (image,)),
        Case(
            "upsample_bilinear2d",
            lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
            (image,),
        ),
        Case(
            "upsample_bilinear2d",
            lambda x: F.interpolate(x, size=(4, 20), mode="bilinear", align_corners=True),
            (image,),
        ),
        Case(
            "upsample_bicubic2d", lambda x: F.interpolate(x, size=(9, 6), mode="bicubic"), (image,)
        ),
        Case(
            "_upsample_bilinear2d_aa",
            lambda x: F.interpolate(x, size=(3, 12), mode="bilinear", antialias=True),
            (image,),
        ),
        Case(
            "_upsample_bicubic2d_aa",
            lambda x: F.interpolate(x, scale_factor=0.4, mode="bicubic", antialias=True),
            (image,),
        ),
        Case(
            "upsample_linear1d",
            lambda x: F.interpolate(x[0], scale_factor=2, mode="linear"),
            (image,),
        ),
        Case(
            "grid_sampler_2d",
            lambda x, g: F.grid_sample(x, g, align_corners=True),
            (image, normal(1, 4, 5, 2).tanh()),
        ),
        Case("native_layer_norm", lambda x: F.layer_norm(x, (9,)), (image,)),
        Case("native_group_norm", lambda x: F.group_norm(x[:, [0, 1, 2, 0]], 2), (far,), True),
        Case("_native_batch_norm_legit", F.instance_norm, (far,), True),
        Case("_native_batch_norm_legit_no_training", layer(nn.BatchNorm2d(3)), (image,)),
        Case("rms_norm", lambda x: F.rms_norm(x, (9,)), (image,)),
    ]


THEMES = {
    function.__name__: function
    for function in (unary, binary, reductions, shapes, indexing, products, images)
}
