from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from dataset_rows import CANARY, hardware, measurement, workload
from hypothesis import given
from hypothesis import strategies as st
from moto.server import ThreadedMotoServer

from costlib.cli.app import run as run_command
from costlib.data import remote
from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.data.remote import fetch_dataset, publish_dataset
from costlib.errors import DatasetError, HubError, StorageError
from costlib.hub import load_pretrained
from costlib.hub.remote import publish
from costlib.remote import file_system
from costlib.remote.address import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A local S3 server with an empty bucket, as fsspec's `s3://`."""
    import fsspec

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        boto3.client("s3").create_bucket(Bucket="bucket")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        yield "s3://bucket"
        fsspec.get_filesystem_class("s3").clear_instance_cache()
    server.stop()


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset.create(tmp_path / "mine")
    for one in (made, Dataset.create(made.path / "heldout")):
        one.add_hardware(hardware(), CANARY)
        one.append_workloads([workload("a")])
        one.append_measurements(hardware().hardware_id, [measurement(i, "a") for i in range(3)])
    return made


def programs(one: Dataset) -> list[str]:
    return sorted(one.scan().collect()["program_id"])


def test_through_a_bucket(dataset: Dataset, s3: str) -> None:
    url = f"{s3}/through"
    assert publish_dataset(dataset, url) == url
    fetched = Dataset.open(url)
    assert programs(fetched) == programs(dataset)
    inner, held_out = fetched.held_out(), dataset.held_out()
    assert inner is not None and held_out is not None and programs(inner) == programs(held_out)
    assert fetched.hardware() == dataset.hardware()


def test_only_what_is_new_travels(dataset: Dataset, s3: str) -> None:
    url = f"{s3}/grows"
    publish_dataset(dataset, url)
    folder = fetch_dataset(url)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    dataset.append_measurements(hardware().hardware_id, [measurement(7, "a")])
    publish_dataset(dataset, url)
    assert programs(Dataset.open(url)) == programs(dataset)
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    assert len(after) == len(before) + 1
    assert all(after[path] == time for path, time in before.items())


def test_after_a_compaction(dataset: Dataset, s3: str) -> None:
    url = f"{s3}/compacted"
    dataset.append_measurements(hardware().hardware_id, [measurement(7, "a")])
    publish_dataset(dataset, url)
    fetch_dataset(url)
    compact(dataset)
    publish_dataset(dataset, url)
    fetched = Dataset.open(url)
    assert programs(fetched) == programs(dataset)
    assert len(fetched.part_files("measurements")) == 1


def test_nothing_travels_twice(dataset: Dataset, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{s3}/twice"
    publish_dataset(dataset, url)
    folder = fetch_dataset(url)
    files, _ = file_system.url_to_fs(url)
    monkeypatch.setattr(files, "get_file", None)
    assert fetch_dataset(url) == folder


def test_a_part_of_the_same_size_and_another_content(dataset: Dataset, s3: str) -> None:
    url = f"{s3}/mended"
    (part,) = dataset.part_files("measurements")
    good = part.read_bytes()
    part.write_bytes(bytes(len(good)))
    publish_dataset(dataset, url)
    copy = fetch_dataset(url) / part.relative_to(dataset.path)
    assert copy.read_bytes() != good
    files, root = file_system.url_to_fs(url)
    files.pipe_file(f"{root}/{part.relative_to(dataset.path)}", good)
    fetch_dataset(url)
    assert copy.read_bytes() == good


def test_compacted_at_its_place_while_it_is_fetched(
    dataset: Dataset, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{s3}/moving"
    dataset.append_measurements(hardware().hardware_id, [measurement(7, "a")])
    publish_dataset(dataset, url)
    files, _ = file_system.url_to_fs(url)
    get_file = files.get_file

    def compacts(source: str, target: str) -> None:
        if "measurements" in source:
            monkeypatch.setattr(files, "get_file", get_file)
            compact(dataset)
            publish_dataset(dataset, url)
        get_file(source, target)

    monkeypatch.setattr(files, "get_file", compacts)
    fetched = Dataset.open(url)
    assert programs(fetched) == programs(dataset)
    assert len(fetched.part_files("measurements")) == 1


def test_parts_that_are_gone_wait_for_their_readers(dataset: Dataset) -> None:
    url = f"file://{dataset.path}"
    dataset.append_measurements(hardware().hardware_id, [measurement(7, "a")])
    fetched = Dataset.open(url)
    compact(dataset)
    with fetched.reading():
        rows = fetched.scan()
        fetching = threading.Thread(target=fetch_dataset, args=[url])
        fetching.start()
        fetching.join(timeout=1)
        assert fetching.is_alive()
        assert sorted(rows.collect()["program_id"]) == programs(dataset)
    fetching.join()
    assert len(fetched.part_files("measurements")) == 1
    assert programs(fetched) == programs(dataset)


def test_a_full_disk_is_told_from_a_broken_line(
    dataset: Dataset, s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{s3}/full"
    publish_dataset(dataset, url)
    files, _ = file_system.url_to_fs(url)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "get_file", full)
    with pytest.raises(StorageError, match=f"no space is left .*{url}; free some space"):
        fetch_dataset(url)


def test_offline_once_cached(
    dataset: Dataset,
    s3: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"{s3}/offline"
    publish_dataset(dataset, url)
    folder = fetch_dataset(url)

    def offline(_: str) -> None:
        raise ConnectionError("network is unreachable")

    monkeypatch.setattr(file_system, "url_to_fs", offline)
    with caplog.at_level(logging.WARNING):
        assert fetch_dataset(url) == folder
    assert "copy fetched before" in caplog.text
    with pytest.raises(HubError, match="network is unreachable"):
        fetch_dataset(f"{url}-another")


def test_there_is_none(s3: str, tmp_path: Path) -> None:
    for url in (f"{s3}/none", f"file://{tmp_path}/none"):
        with pytest.raises(DatasetError, match="there is no dataset at"):
            Dataset.open(url)
    with pytest.raises(HubError, match="cannot be reached"):
        Dataset.open("no-such-scheme://bucket/name")


def test_a_fetch_that_is_cut_short_is_no_dataset(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{dataset.path}"
    files, root = file_system.url_to_fs(url)

    def breaks(source: str, target: str) -> None:
        if "measurements" in source:
            raise ConnectionResetError("connection reset")
        shutil.copy(source, target)

    monkeypatch.setattr(files, "get_file", breaks)
    monkeypatch.setattr(file_system, "url_to_fs", lambda _: (files, root))
    with pytest.raises(HubError, match="connection reset"):
        fetch_dataset(url)
    monkeypatch.undo()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    assert programs(Dataset.open(url)) == programs(dataset)
    assert not list((tmp_path / "cache").rglob(".tmp-*"))


def test_what_is_none_of_a_dataset_stays_where_it_is(dataset: Dataset) -> None:
    (dataset.path / "notes.txt").write_text("mine")
    (dataset.path / "features").mkdir()
    (dataset.path / "features" / "part-0.parquet").write_bytes(b"large")
    folder = fetch_dataset(f"file://{dataset.path}")
    assert not (folder / "notes.txt").exists() and not (folder / "features").exists()


@given(
    st.lists(
        st.sampled_from(
            ["..", ".", "", "/", "heldout", "measurements", "a.parquet", "dataset.json", "x"]
        ),
        max_size=5,
    )
)
def test_no_name_leads_outside(parts: list[str]) -> None:
    name = "/".join(parts)
    if remote._belongs(name):
        inside = (Path("/cache") / name).resolve()
        assert inside.is_relative_to("/cache") and ".." not in parts


def test_commands_take_addresses(
    dataset: Dataset, s3: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"{s3}/commands"
    for arguments in (["publish", str(dataset.path), "--to", url], ["dataset", "info", url]):
        monkeypatch.setattr("sys.argv", ["costlib", *arguments])
        assert run_command() == 0
    assert url in capsys.readouterr().out


def test_bundles_in_a_bucket(s3: str) -> None:
    bundle = load_pretrained("cpu-gbdt")
    url = publish(bundle, f"{s3}/bundles/cpu-gbdt")
    fetched = load_pretrained(url)
    assert fetched.manifest == bundle.manifest and fetched.path != bundle.path
