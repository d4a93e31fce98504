"""The sweep over architectures: what it tries, and what it has written down."""

from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from tools.evidence import coverage
from tools.evidence.architectures import ARCHITECTURES
from tools.evidence.architectures.hugging_face import small_config
from tools.evidence.files import read_result
from tools.evidence.pages.coverage import APART

BY_NAME = {found.name: found for found in ARCHITECTURES}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(ARCHITECTURES)


def test_every_record_is_of_an_architecture_and_says_why_it_is_not_right() -> None:
    for family, records in read_result("coverage")["families"].items():
        assert list(records) == sorted(records, key=str.lower)
        for name, record in records.items():
            assert BY_NAME[name].family == family
            assert record["reason"] or record["status"] in ("right", "too slow")


def test_what_is_not_counted_has_never_been_compared() -> None:
    assert not APART.keys() & {"right", "different", "unsupported", "traceback", "crash"}


@pytest.mark.parametrize(
    "name",
    [
        "transformers.BertModel",
        "transformers.T5Model",
        "transformers.GPT2LMHeadModel, cache in and out",
        "transformers.WhisperForConditionalGeneration",
    ],
)
def test_models_are_small_and_take_what_they_are_given(name: str) -> None:
    module, inputs = BY_NAME[name].make()
    assert sum(weight.numel() for weight in module.parameters()) < 200_000
    with torch.no_grad():
        named = isinstance(inputs, dict)
        outputs = module.eval()(**inputs) if named else module.eval()(*inputs)
    assert pytree.tree_leaves(outputs)


def test_configurations_are_shrunk_in_all_their_parts() -> None:
    from transformers import CLIPConfig

    config = small_config(CLIPConfig, {"text_config": {"hidden_size": 16}})
    assert config.text_config.hidden_size == 16
    assert config.vision_config.hidden_size == 32
    assert config.vision_config.num_hidden_layers == 2


def test_families_take_turns() -> None:
    first = coverage._in_turn(ARCHITECTURES)[: len({found.family for found in ARCHITECTURES})]
    assert len({found.family for found in first}) == len(first)


def test_what_has_a_record_is_tried_again_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {
        "timm.resnet18": {"status": "right"},
        "timm.vgg11": {"status": "not tried"},
    }
    monkeypatch.setattr(coverage, "read_result", lambda _: {"families": {"images": records}})
    rest = {found.name for found in coverage._wanted([], None)}
    assert "timm.resnet18" not in rest
    assert "timm.vgg11" in rest
    assert [found.name for found in coverage._wanted(["timm.resnet18"], None)] == ["timm.resnet18"]
