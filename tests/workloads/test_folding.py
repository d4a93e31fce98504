from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from costlib.tvm_compat import relax, tvm
from costlib.workloads import InputSpec, extract_tasks, load_network
from costlib.workloads.folding import constant_of, fold_constants, static_type


def norm(channels, kind=nn.BatchNorm2d):
    layer = kind(channels)
    for values in (layer.weight, layer.running_var):
        nn.init.uniform_(values, 0.5, 1.5)
    for values in (layer.bias, layer.running_mean):
        nn.init.normal_(values)
    return layer


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), norm(8))

    def forward(self, x):
        return torch.relu(self.main(x) + x)


class SharedConvolution(nn.Module):
    """The convolution is used beside its batch norm too, so it has to stay as it is."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 1)
        self.norm = norm(8)

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) * y


def network(module, *shape):
    return load_network(module, (InputSpec("x", "float32", shape),))


IMAGE = (1, 8, 9, 9)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Conv2d(8, 6, 3, bias=False), norm(6)), IMAGE),
        (nn.Sequential(nn.Conv2d(8, 6, 3), norm(6), nn.ReLU()), IMAGE),
        (nn.Sequential(nn.Conv2d(8, 8, 3, groups=4), norm(8)), IMAGE),
        (nn.Sequential(nn.Conv2d(8, 8, 3, groups=8, bias=False), norm(8)), IMAGE),
        (nn.Sequential(nn.Conv1d(8, 6, 3), norm(6, nn.BatchNorm1d)), (2, 8, 9)),
        (nn.Sequential(nn.Conv3d(4, 6, 3), norm(6, nn.BatchNorm3d)), (1, 4, 5, 5, 5)),
        (nn.Sequential(nn.ConvTranspose2d(8, 6, 3), norm(6)), IMAGE),
        (Residual(), IMAGE),
    ],
)
def test_batch_norm_folds_into_the_convolution(module, shape, check, hardware):
    folded = network(module, *shape)
    check(folded)
    assert len(extract_tasks(folded, hardware)) == 1


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.ReLU(), norm(8)), IMAGE),
        (nn.Sequential(nn.ConvTranspose2d(8, 8, 3, groups=2), norm(8)), IMAGE),
        (SharedConvolution(), IMAGE),
    ],
)
def test_batch_norm_elsewhere_becomes_scale_and_shift(module, shape, check):
    check(network(module, *shape))


def test_shared_convolution_is_computed_once(hardware):
    tasks = extract_tasks(network(SharedConvolution(), *IMAGE), hardware)
    assert sum(task.weight for task in tasks if "conv2d" in task.name) == 1


def folded_output(build):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            output = builder.emit_output(build(builder.emit, x))
        builder.emit_func_output(output)
    mod = relax.transform.DeadCodeElimination()(
        relax.transform.CanonicalizeBindings()(fold_constants(builder.get()))
    )
    return mod.script(show_meta=False)


def test_operations_on_weights_are_done_beforehand():
    weight = relax.const(np.arange(6, dtype="float32").reshape(2, 3))

    def build(emit, x):
        transposed = emit(relax.op.permute_dims(weight))
        shifted = emit(relax.op.add(transposed, relax.const(1.0, "float32")))
        return relax.op.matmul(x, shifted)

    script = folded_output(build)
    assert "permute_dims" not in script
    assert "R.add" not in script


def test_reshape_to_the_same_shape_disappears():
    assert "reshape" not in folded_output(
        lambda emit, x: relax.op.nn.relu(emit(relax.op.reshape(x, (4, 3))))
    )


@pytest.mark.parametrize(("number", "is_left"), [(1.0, False), (2.0, True)])
def test_multiplications_with_one_disappear(number, is_left):
    def build(emit, x):
        return relax.op.nn.relu(emit(relax.op.multiply(relax.const(number, "float32"), x)))

    assert ("multiply" in folded_output(build)) == is_left


@pytest.mark.parametrize(("exponent", "power_left"), [(2.0, False), (3.0, False), (0.5, True)])
def test_small_powers_become_multiplications(exponent, power_left):
    script = folded_output(lambda emit, x: relax.op.power(x, relax.const(exponent, "float32")))
    assert ("R.power" in script) == power_left


def test_look_ups_are_clipped(run):
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(4, 2)

        def forward(self, x):
            return self.table(x)

    module = Table()
    net = load_network(module, (InputSpec("x", "int64", (3,), 4),))
    (rows,) = run(net, [np.array([0, 3, 1000], "int64")])
    np.testing.assert_array_equal(rows, module.table.weight.detach().numpy()[[0, 3, 3]])


def test_static_type_of_a_dynamic_tensor_has_no_shape():
    n = tvm.tirx.Var("n", "int64")
    assert static_type(relax.Var("x", relax.TensorType((n, 3), "float32"))) == (None, "float32")
    assert static_type(relax.Var("x", relax.TensorType((2, 3), "int8"))) == ((2, 3), "int8")


_DTYPES = ("bool", "int32", "int64", "float16", "float32", "float64")


@settings(max_examples=5, deadline=None)
@given(
    dtype=st.sampled_from(_DTYPES),
    shape=st.lists(st.integers(1, 4), max_size=3),
    seed=st.integers(0, 99),
)
def test_what_is_folded_equals_what_is_not(dtype, shape, seed):
    """The same operations, once on constants and once on what is passed in."""
    rng = np.random.default_rng(seed)
    a, b = (np.array(rng.integers(-9, 9, shape) * 2**20 + 7).astype(dtype) for _ in range(2))
    folded, computed = (operations(dtype, shape, arrays) for arrays in ((a, b), None))
    functions = fold_constants(folded)
    assert "R.add" not in functions.script() or dtype == "bool"
    expected = outputs_of(computed, a, b)
    for ours, theirs in zip(outputs_of(functions), expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)


def operations(dtype, shape, constants):
    """A module of everything that is folded, on constants or on two inputs."""
    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType(shape, dtype)) for name in "ab"]
    op = relax.op
    with builder.function("main", [] if constants else params):
        with builder.dataflow():
            a, b = map(constant_of, constants) if constants else params
            values = [
                op.permute_dims(a),
                op.reshape(a, [1, -1]),
                op.expand_dims(a, 0),
                op.broadcast_to(a, [2, *shape]),
                op.astype(a, "int64"),
            ]
            if dtype != "bool":
                values += [
                    op.add(a, b),
                    op.subtract(a, b),
                    op.multiply(a, b),
                    op.astype(a, "float64"),
                ]
            if "float" in dtype:
                values.append(op.divide(a, b))
            result = builder.emit_output(relax.Tuple([builder.emit(value) for value in values]))
        builder.emit_func_output(result)
    return builder.get()


def outputs_of(mod, *arrays):
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    outputs = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
    return [output.numpy() for output in outputs]
