from __future__ import annotations

import numpy as np
import pytest

from costlib.hardware import Hardware, make_target
from costlib.tvm_compat import relax, tvm
from costlib.workloads import prepare_network, zoo
from costlib.workloads.zoo.hugging_face import _vision

SMALL = (
    _vision(
        "small_resnet",
        "ResNet",
        layer_type="basic",
        embedding_size=16,
        depths=[2] * 4,
        hidden_sizes=[16, 32, 64, 128],
    ),
    _vision("small_convnext", "ConvNext", depths=[1] * 4, hidden_sizes=[16, 16, 32, 32]),
)


@pytest.fixture(scope="module")
def small_networks():
    """Networks of the zoo that have the layers of large ones."""
    with pytest.MonkeyPatch.context() as patch:
        for spec in SMALL:
            patch.setitem(zoo._SPECS, spec.name, spec)
        yield


@pytest.fixture(scope="session")
def hardware():
    return Hardware.local(num_cores=1)


@pytest.fixture
def run(hardware):
    """Compile a network untuned and return its outputs for the inputs."""

    def compiled(network, inputs):
        target = make_target(hardware.target | {"opt-level": 0})  # LLVM's own passes take longest.
        with tvm.transform.PassContext(opt_level=3):
            program = tvm.compile(prepare_network(network, hardware), target=target)
        machine = relax.VirtualMachine(program, tvm.cpu())
        outputs = machine["main"](*[tvm.runtime.tensor(array) for array in inputs])
        outputs = [outputs] if isinstance(outputs, tvm.runtime.Tensor) else outputs
        return [output.numpy() for output in outputs]

    return compiled


@pytest.fixture
def check(run):
    """Compare a compiled network with PyTorch to float32 rounding."""

    def compare(network):
        inputs = network.random_inputs(0)
        assert network.reference is not None
        for ours, theirs in zip(run(network, inputs), network.reference(inputs), strict=True):
            scale = np.abs(theirs).max()
            assert scale > 1e-3
            np.testing.assert_allclose(ours, theirs, atol=2e-5 * max(scale, 1.0), rtol=1e-4)

    return compare
