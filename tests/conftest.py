"""Has those who run tests share fixtures; who hands them out starts sooner without."""

from __future__ import annotations

import pytest
import rewritten  # noqa: F401 - Before anything that imports these suites.


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("shared_fixtures")
