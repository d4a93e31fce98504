from __future__ import annotations

import pytest
from pydantic import ValidationError

from costlib.errors import UnknownNameError
from costlib.models import model_class
from costlib.models.gbdt import GbdtConfig


def test_settings_are_frozen_and_known() -> None:
    with pytest.raises(ValidationError):
        GbdtConfig(trees=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        GbdtConfig().num_trees = 3  # type: ignore[misc]


def test_unknown_model() -> None:
    with pytest.raises(UnknownNameError, match="did you mean gbdt"):
        model_class("gbd")
