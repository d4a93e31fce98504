from __future__ import annotations

import pytest

from costlib import errors
from costlib.errors import CostlibError, UnknownNameError


def family() -> list[type[CostlibError]]:
    found = [c for c in vars(errors).values() if isinstance(c, type)]
    return [c for c in found if issubclass(c, CostlibError) and c is not CostlibError]


@pytest.mark.parametrize("error", family())
def test_each_is_also_a_builtin_and_has_an_exit_code(error: type[CostlibError]) -> None:
    assert issubclass(error, (ValueError, RuntimeError, OSError, ImportError))
    assert 0 < error.exit_code < 10


def test_unknown_name_suggests_the_nearest() -> None:
    error = UnknownNameError("network", "resnet18", ["resnet_18", "bert_tiny"])
    assert error.nearest == ["resnet_18"]
    assert str(error) == "unknown network 'resnet18'; did you mean resnet_18?"


def test_unknown_name_lists_all_if_none_is_near() -> None:
    assert str(UnknownNameError("model", "zzz", ["b", "a"])) == "unknown model 'zzz'; known: a, b"
    assert "\n" not in str(UnknownNameError("model", "a\nb", ["b"]))
