"""Content ids: short hashes that are the same in every process, on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

ID_LENGTH = 16
"""Hexadecimal digits in an id: 64 bits, so a clash among 10 million records is unlikely."""


def content_id(*parts: Any) -> str:
    """Hash JSON-like values to a hexadecimal string of :data:`ID_LENGTH` digits."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
