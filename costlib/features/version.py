"""Which features this costlib computes."""

FEATURE_VERSION = "per-store-1"
"""Raised whenever a column changes its meaning; bundles and cached features carry it."""
