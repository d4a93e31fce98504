from __future__ import annotations

from pathlib import Path

import pytest

from costlib.data.dataset import Dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset.create(tmp_path / "ds")
