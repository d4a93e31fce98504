"""Which features this costlib computes."""

FEATURE_VERSION = "nests-2"
"""Raised whenever a column changes its meaning; bundles and cached features carry it."""

LANGUAGE_VERSION = "tokens-3"
"""Of the tokens that programs are written in; raised when one changes its meaning."""
