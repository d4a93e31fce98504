from __future__ import annotations

import sys
from collections.abc import Callable

import forked
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from costlib.errors import UnsupportedModelError
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.tuning.networks import NetworkSet
from costlib.workloads import Network, extract_tasks, load_network, winograd
from costlib.workloads.layout import in_layout
from costlib.workloads.winograd_kernels import _POINTS, TILES, _matrices

LAYOUTS = ("nhwc", "nchw8c")
FEW = settings(
    deadline=None,
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Residual(nn.Module):
    """A convolution with a bias, a residual and an activation behind it."""

    def __init__(self, inputs: int, outputs: int, padding: tuple[int, int]) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 1)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        z = self.second(y)
        return torch.relu(z + y) if z.shape == y.shape else torch.sigmoid(z)


def _as_winograd(
    module: nn.Module, shape: tuple[int, ...], layout: str, tile: int, patch: pytest.MonkeyPatch
) -> Network:
    patch.setattr(winograd._Convolution, "best_tile", lambda _: tile)
    given = load_network(module.eval(), example_inputs=(torch.randn(shape),))
    return in_layout(in_layout(given, layout), "winograd")


@pytest.mark.parametrize("tile", TILES)
def test_the_matrices_convolve(tile: int) -> None:
    weights, inputs, outputs = _matrices(tile)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(tile + 2), rng.standard_normal(3)
    found = outputs @ ((weights @ w) * (inputs @ x))
    np.testing.assert_allclose(found, np.correlate(x, w, "valid"), rtol=1e-9)


def test_its_points_are_more_exact_than_the_usual_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((500, 64, 6, 6)), rng.standard_normal((64, 3, 3))
    places = [(i, j) for i in range(3) for j in range(3)]
    exact = sum(
        np.einsum("pcxy,c->pxy", x[..., i : i + 4, j : j + 4], w[:, i, j]) for i, j in places
    )

    def error() -> float:
        weights, inputs, outputs = _matrices(4)
        u = (weights @ w @ weights.T).astype("float32")
        v = inputs.astype("float32") @ x.astype("float32") @ inputs.T.astype("float32")
        sums = (u * v).sum(1, dtype="float32")
        found = outputs.astype("float32") @ sums @ outputs.T.astype("float32")
        return float(np.sqrt(np.mean((found - exact) ** 2)))

    ours = error()
    monkeypatch.setitem(_POINTS, 4, (0.0, 1.0, -1.0, 2.0, -2.0))
    assert ours < 0.75 * error()


@FEW
@given(
    st.sampled_from(LAYOUTS),
    st.sampled_from(TILES),
    st.integers(1, 2),
    st.tuples(st.integers(3, 13), st.integers(3, 13)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_computes_the_same(
    check: Callable[[Network], None],
    layout: str,
    tile: int,
    batch: int,
    extents: tuple[int, int],
    channels: tuple[int, int],
    padding: tuple[int, int],
) -> None:
    inputs, outputs = (8 * n for n in channels)
    with pytest.MonkeyPatch.context() as patch:
        module = Residual(inputs, outputs, padding)
        check(_as_winograd(module, (batch, inputs, *extents), layout, tile, patch))


class OfVolumes(nn.Module):
    """A convolution over volumes, with what is computed where its outputs are stored."""

    def __init__(self, channels: int, slices: int, padding: tuple[int, int, int]) -> None:
        super().__init__()
        self.first = nn.Conv3d(channels, 16, 1)
        self.second = nn.Conv3d(16, 16, (slices, 3, 3), padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        z = self.second(y)
        return torch.relu(z + y) if z.shape == y.shape else torch.sigmoid(z)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize(
    ("slices", "padding", "shape"),
    [
        (3, (1, 1, 1), (2, 8, 3, 9, 6)),
        (2, (1, 0, 1), (1, 8, 4, 5, 9)),
        (1, (0, 1, 0), (1, 8, 2, 6, 7)),
    ],
)
def test_volumes(
    slices: int,
    padding: tuple[int, int, int],
    shape: tuple[int, ...],
    tile: int,
    check: Callable[[Network], None],
    hardware: Hardware,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = OfVolumes(shape[1], slices, padding)
    network = _as_winograd(module, shape, "nhwc", tile, monkeypatch)
    names = [task.name for task in extract_tasks(network, hardware)]
    assert sum("conv3d" in name for name in names) == 1, "the first one has 1 x 1 x 1"
    assert sum(name == "winograd_input" for name in names) == 1
    check(network)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_follows_is_computed_where_outputs_are_stored(
    layout: str, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Residual(16, 16, (1, 1))
    network = _as_winograd(module, (1, 16, 9, 9), layout, 4, monkeypatch)
    (task,) = (t for t in extract_tasks(network, hardware) if "output" in t.name)
    assert task.name == "winograd_output_add_add_relu"
    script = task.mod.script()
    assert script.count("T.sblock(") == 2  # The root, and one.
    assert "alloc_buffer" not in script
    assert task.title.startswith(
        "winograd_output 36×9×16 → 1×9×9×16 + add + add + relu"
        if layout == "nhwc"
        else "winograd_output"
    )


_BETWEEN_GUARDS = """
import ctypes, mmap, sys
import numpy as np
from costlib.hardware import Hardware
from costlib.tvm_compat import tvm
from costlib.workloads.winograd_kernels import Image, input_transform, places, tiles

image, tile = Image(1, 8, 8, 16, int(sys.argv[1]) or None), int(sys.argv[2])
kernel = input_transform(image, image, (1, 1), tile).with_attr("global_symbol", "main")
library = tvm.compile(tvm.IRModule({"main": kernel}), target=Hardware.local().tvm_target())
page = mmap.PAGESIZE
assert image.nbytes == page == 4096
memory = mmap.mmap(-1, 3 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
for guard in (start, start + 2 * page):
    assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
x = np.frombuffer(memory, "float32", page // 4, page).reshape(image.shape)
x[:] = 1
v = tvm.runtime.empty((places(tile), *tiles(image, image, tile), 16), "float32")
library["main"](tvm.runtime.from_dlpack(x), v)
print(np.isfinite(v.numpy()).all())
"""


@pytest.mark.parametrize("block", [0, 8])
@pytest.mark.parametrize("tile", TILES)
def test_nothing_outside_an_image_is_read(block: int, tile: int) -> None:
    found = forked.run([sys.executable, "-c", _BETWEEN_GUARDS, str(block), str(tile)])
    assert (found.returncode, found.stdout) == (0, "True\n"), found.stderr[-1000:]


def test_kernels_with_a_schedule_are_not_tuned(
    hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = _as_winograd(Residual(16, 16, (1, 1)), (1, 16, 9, 9), "nhwc", 2, monkeypatch)
    left = {task.name: DesignSpace(task).left for task in extract_tasks(network, hardware)}
    assert left["winograd_input"] == "it is scheduled by hand"
    assert left["matmul"] is None


@pytest.mark.parametrize(
    "source",
    [
        "conv2d 1 64 28 28 64 3 pad=1",  # Channels first.
        "conv2d 1 64 28 28 64 3 stride=2 pad=1+nhwc",
        "conv2d 1 64 28 28 64 5 pad=2+nhwc",
        "grouped_conv2d 1 64 28 28 64 3 2 pad=1+nhwc",
        "dilated_conv2d 1 64 28 28 64 3 2 pad=2+nhwc",
        "conv2d 1 3 28 28 64 3 pad=1+nhwc",
        "conv2d 1 512 4 4 512 3 pad=1+nhwc",  # It would read more weights than it saves.
        "conv3d 1 32 4 28 28 32 3 stride=2 pad=1+nhwc",
    ],
)
def test_not_for_every_convolution(source: str) -> None:
    with pytest.raises(UnsupportedModelError, match=r"name a layout first: \+nhwc\+winograd"):
        load_network(f"{source}+winograd")


def test_a_run_tries_it_where_it_is_less_work(hardware: Hardware) -> None:
    source = "conv2d 1 64 28 28 64 3 pad=1"
    names = [n.name for n in NetworkSet.load([source], hardware, layouts="all").networks]
    blocked = f"{source}+nchw{hardware.vector_bits // 32}c"
    layouts = [f"{source}+nhwc", f"{source}+nhwc+winograd", blocked, f"{blocked}+winograd"]
    assert names == [source, *layouts]
