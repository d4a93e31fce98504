from __future__ import annotations

import pytest

from costlib.errors import InputError, UnknownNameError
from costlib.workloads import HELD_OUT, extract_tasks, list_networks, load_network
from costlib.workloads.zoo import network_spec
from costlib.workloads.zoo.registry import Size


def test_held_out_networks_exist():
    assert set(HELD_OUT) <= set(list_networks())


def test_networks_are_listed_by_name():
    assert sorted(list_networks()) == list_networks()


@pytest.mark.parametrize(
    "name", ["bert_tiny", "dcgan", "llama_mini@s8", "r3d@r16", "squeezenet_int8@r32"]
)
def test_compiled_networks_agree_with_pytorch(name, check):
    check(load_network(name))


@pytest.mark.parametrize(
    "name",
    ["gpt2_mini@s8", "regnet_y_400mf@r32", "textcnn@s16"],
)
def test_imported_networks_return_what_pytorch_does(name):
    network = load_network(name)
    (output,) = network.reference(network.random_inputs(0))
    returned = network.mod["main"].ret_ty
    assert tuple(map(int, returned.shape)) == output.shape
    assert str(returned.dtype) == str(output.dtype)


def test_same_name_same_weights():
    first, second = load_network("dcgan"), load_network("dcgan")
    inputs = first.random_inputs(1)
    (a,), (b,) = first.reference(inputs), second.reference(inputs)
    assert (a == b).all()


def test_variants():
    network = load_network("textcnn@b2-s16")
    assert network.name == "textcnn@b2-s16"
    assert network.inputs[0].shape == (2, 16)
    assert network_spec("resnet_18@b4").sized("b4-r160") == Size(4, 160)
    assert network_spec("resnet_18").sized("") == Size(1, 224)


@pytest.mark.parametrize("variant", ["x3", "b0", "s64", "b4-", "r-1", "b4r160"])
def test_bad_variants_say_how_to_write_them(variant):
    if variant == "b4-":
        assert network_spec("resnet_18").sized(variant) == Size(4, 224)
        return
    with pytest.raises(InputError, match="resnet_18@b4"):
        network_spec("resnet_18").sized(variant)


def test_unknown_network():
    with pytest.raises(UnknownNameError, match="did you mean resnet_18"):
        network_spec("resnet18")


def test_batch_changes_the_tasks(hardware):
    one = {task.workload_id for task in extract_tasks("textcnn@s16", hardware)}
    two = {task.workload_id for task in extract_tasks("textcnn@b2-s16", hardware)}
    assert not one & two


def test_a_quantised_network_computes_on_integers(hardware):
    tasks = [task.title for task in extract_tasks("squeezenet_int8@r32", hardware)]
    assert sum("uint8" in title for title in tasks if title.startswith("conv2d")) >= 15


def test_a_decoder_takes_a_cache_and_returns_it_grown():
    network = load_network("llama_mini_step@b2-p3")
    assert [spec.name for spec in network.inputs] == ["x", "keys", "values"]
    assert network.inputs[1].shape == (2, 2, 8, 3, 64)
    assert [spec.shape for spec in network.interface.outputs][1:] == [(2, 2, 8, 4, 64)] * 2
