"""Tuning logs of other tools: imported into datasets, and exported from them."""
