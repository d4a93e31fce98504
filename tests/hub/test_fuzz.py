"""Bundles that someone changed and then gave matching hashes: refused, or harmless."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.errors import CostlibError
from costlib.features.batch import select
from costlib.hub import Bundle
from costlib.hub.manifest import MANIFEST
from costlib.training.batches import TrainingData, assemble

EDITS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 8), st.binary(max_size=6)),
    min_size=1,
    max_size=4,
)
"""Where in the file, how many bytes go, what takes their place."""

DIGITS = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 2),
        st.text("0123456789-. =e\n", max_size=3).map(str.encode),
    ),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def few(dataset: Dataset) -> TrainingData:
    return assemble(dataset)


def change(content: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, removed, added in edits:
        start = int(place * len(content))
        content = content[:start] + added + content[start + removed :]
    return content


@given(edits=EDITS | DIGITS, file=st.integers(0, 100), shortened=st.booleans())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
def test_changed_files_with_matching_hashes(
    tmp_path: Path,
    bundle: Bundle,
    few: TrainingData,
    edits: list[tuple[float, int, bytes]],
    file: int,
    shortened: bool,
) -> None:
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bundle.path, copy)
    manifest = json.loads((copy / MANIFEST).read_text())
    names = sorted(manifest["files"])
    name = names[file % len(names)]
    content = change((copy / name).read_bytes(), edits)
    content = content[: int(edits[0][0] * len(content))] if shortened else content
    (copy / name).write_bytes(content)
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    (copy / MANIFEST).write_text(json.dumps(manifest))
    try:
        changed = Bundle.load(copy)
    except CostlibError as error:
        assert "\n" not in str(error)
        return
    some = select(few.batch, np.arange(len(few.batch)) < 3)
    try:
        assert len(changed.statement_model().predict(some)) == 3
    except CostlibError as error:
        assert "\n" not in str(error)
