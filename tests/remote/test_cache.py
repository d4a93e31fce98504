"""The cache: where it is, what is in it, and how it is emptied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from costlib.cli.app import run as run_command
from costlib.data.dataset import Dataset
from costlib.data.remote import publish_dataset
from costlib.errors import UnknownNameError
from costlib.hub import Bundle, load_pretrained
from costlib.hub.remote import publish
from costlib.remote.address import CACHE_VARIABLE, cache_root
from costlib.remote.cache import cached_copies, clear_cache


def test_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "costlib"
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    assert cached_copies() == clear_cache() == []


def test_listed_cleared_and_fetched_again(
    bundle: Bundle,
    dataset: Dataset,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def costlib(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["costlib", "cache", *arguments])
        assert run_command() == 0
        return capsys.readouterr().out

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    bundle_url = publish(bundle, f"file://{tmp_path}/remote/mine")
    data_url = publish_dataset(dataset, f"file://{tmp_path}/remote/data")
    load_pretrained(bundle_url)
    fetched = Dataset.open(data_url)
    found = {copy.address: copy for copy in cached_copies()}
    assert list(found) == [bundle_url, data_url]
    assert found[data_url].folder == fetched.path
    listed = json.loads(costlib("list", "--json"))
    assert [one["kind"] for one in listed] == ["bundles", "datasets"]
    assert all(one["size_bytes"] > 1000 for one in listed)
    assert str(tmp_path)[:20] in costlib("list")
    with pytest.raises(UnknownNameError, match="did you mean"):
        clear_cache(bundle_url[:-1])
    assert "1 copy of" in costlib("clear", data_url)
    assert [copy.address for copy in cached_copies()] == [bundle_url]
    assert Dataset.open(data_url).scan().collect().equals(dataset.scan().collect())
    assert "2 copies of" in costlib("clear")
    assert cached_copies() == []
    assert not any(path.is_file() for path in (tmp_path / "cache").rglob("*"))
    assert load_pretrained(bundle_url).manifest == bundle.manifest
