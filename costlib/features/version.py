"""Which features this costlib computes."""

FEATURE_VERSION = "nests-2"
"""Raised whenever a column changes its meaning; bundles and cached features carry it."""

LANGUAGE_VERSION = "tokens-3"
"""Of the tokens that programs are written in; raised when one changes its meaning."""

_GPU_COLUMNS = "gpu-1"
"""The same of the columns that programs of GPUs alone have."""


def feature_version(kind: str) -> str:
    """Return which features are computed for hardware of a kind, see ``Hardware.kind``."""
    return FEATURE_VERSION if kind == "cpu" else f"{FEATURE_VERSION}-{_GPU_COLUMNS}"
