"""Values in pydantic that never change once made."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that never changes; fields that it does not know are passed over."""

    model_config = ConfigDict(frozen=True)


class FrozenStrict(Frozen):
    """A value that never changes, and refuses fields that it does not know."""

    model_config = ConfigDict(extra="forbid")
