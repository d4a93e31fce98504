from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from costlib.errors import BundleError, HubError
from costlib.hub import Bundle, load_pretrained
from costlib.hub.manifest import MANIFEST, sha256_of
from costlib.hub.remote import fetch, publish
from costlib.remote import file_system
from costlib.remote.address import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_published_to_a_folder(bundle: Bundle, tmp_path: Path) -> None:
    place = publish(bundle, str(tmp_path / "shelf" / "mine"))
    assert load_pretrained(place).manifest == bundle.manifest
    assert publish(bundle, place) == place, "again, in its place"


def test_a_folder_with_something_else_is_left_alone(bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(BundleError, match="is no bundle"):
        publish(bundle, str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_published_and_fetched(bundle: Bundle, tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}://{tmp_path}/remote/mine"
    assert publish(bundle, url) == url
    assert load_pretrained(url).manifest == bundle.manifest


def test_offline_once_cached(
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"file://{tmp_path}/remote/mine"
    publish(bundle, url)
    folder = fetch(url)

    def offline(_: str) -> None:
        raise ConnectionError("network is unreachable")

    monkeypatch.setattr(file_system, "url_to_fs", offline)
    assert fetch(url) == folder
    assert "copy fetched before" in caplog.text
    Bundle.load(folder)
    with pytest.raises(HubError, match="another cannot be reached: network is unreachable"):
        fetch(f"{url}/another")


def test_never_fetched_and_not_there(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no bundle at"):
        fetch(f"file://{tmp_path}/none")
    with pytest.raises(HubError, match="cannot be reached"):
        fetch("no-such-scheme://bucket/name")


def test_a_changed_bundle_takes_the_place_of_the_cached(bundle: Bundle, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote/mine"
    publish(bundle, url)
    folder = fetch(url)
    manifest = tmp_path / "remote" / "mine" / MANIFEST
    manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 7'))
    assert fetch(url) == folder
    assert Bundle.load(folder).manifest.seed == 7


def test_a_damaged_bundle_does_not_replace_the_cached(bundle: Bundle, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote/mine"
    publish(bundle, url)
    folder = fetch(url)
    remote = tmp_path / "remote" / "mine"
    manifest = (remote / MANIFEST).read_text()
    digest = bundle.manifest.files["model/config.json"]
    (remote / MANIFEST).write_text(manifest.replace(digest, digest[::-1]))
    with pytest.raises(BundleError, match=rf"^{url}/model/config\.json was changed"):
        fetch(url)
    (remote / "model" / "config.json").unlink()
    with pytest.raises(BundleError, match="mine is incomplete"):
        fetch(url)
    Bundle.load(folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_damaged_copy_is_mended(bundle: Bundle, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote/mine"
    publish(bundle, url)
    folder = fetch(url)
    (folder / "model" / "config.json").write_text("{}")
    (folder / "priors" / "priors.parquet").unlink()
    assert load_pretrained(url).manifest == bundle.manifest


def test_only_what_changed_is_fetched(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/remote/mine"
    publish(bundle, url)
    fetch(url)
    place = file_system.url_to_fs(url)[0]
    fetched: list[str] = []
    get_file = place.get_file

    def noted(source: str, to: str) -> None:
        fetched.append(Path(source).name)
        get_file(source, to)

    monkeypatch.setattr(place, "get_file", noted)
    fetch(url)
    assert fetched == [MANIFEST]
    model = tmp_path / "remote" / "mine" / "model" / "model.txt"
    manifest = tmp_path / "remote" / "mine" / MANIFEST
    with model.open("a") as file:
        file.write("\n")
    manifest.write_text(
        manifest.read_text().replace(bundle.manifest.files["model/model.txt"], sha256_of(model))
    )
    fetched.clear()
    fetch(url)
    assert fetched == [MANIFEST, "model.txt", "README.md"]


def test_publishing_again_removes_what_is_no_part_any_more(bundle: Bundle, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/remote/mine"
    publish(bundle, url)
    remote = tmp_path / "remote" / "mine"
    (remote / "generator").mkdir()
    for name in ("generator/old.safetensors", "LICENSE"):
        (remote / name).touch()
    publish(bundle, url)
    assert not (remote / "generator" / "old.safetensors").exists()
    assert (remote / "LICENSE").exists(), "it is not ours"


def test_a_manifest_may_not_name_files_outside(bundle: Bundle, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(bundle.path, tmp_path / "copy"))
    manifest = copy / MANIFEST
    manifest.write_text(manifest.read_text().replace("model/config.json", "../config.json"))
    with pytest.raises(BundleError, match="outside the bundle"):
        fetch(f"file://{copy}")
    assert not list((tmp_path / "cache").rglob("config.json"))
