"""Values in pydantic that never change once made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that never changes; fields that it does not know are passed over."""

    model_config = ConfigDict(frozen=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy it, some fields changed; what is cached of the fields is not copied."""
        copy = super().model_copy(update=update, deep=deep)
        for name in copy.__dict__.keys() - type(self).model_fields.keys():
            del copy.__dict__[name]
        return copy


class FrozenStrict(Frozen):
    """A value that never changes, and refuses fields that it does not know."""

    model_config = ConfigDict(extra="forbid")
