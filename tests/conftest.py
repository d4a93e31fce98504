"""Has those who run tests share fixtures; who hands them out starts sooner without."""

from __future__ import annotations

import gc

import pytest
import rewritten  # noqa: F401 - Before anything that imports these suites.

gc.set_threshold(50_000, 20, 20)  # It would look at all of PyTorch and TVM again and again.


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("shared_fixtures")
