"""Has pytest explain assertions of the conformance suites; imported before they are."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("costlib.testing")
