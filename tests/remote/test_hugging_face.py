"""Bundles and datasets on a local stand-in of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Client
from dataset_rows import fill, hardware, measurement
from hub_server import File, HubServer

from costlib.data.card import write_card
from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.features.build import build_features
from costlib.hub import list_bundles
from costlib.hub.manifest import sha256_of


@pytest.fixture(scope="module")
def server() -> Iterator[HubServer]:
    started = HubServer()
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def client(server: HubServer, home: Path) -> Iterator[Client]:
    with Client(server.url, home) as started:
        yield started


@pytest.fixture
def hub(server: HubServer) -> HubServer:
    server.sent.clear()
    return server


@pytest.fixture
def repository(request: pytest.FixtureRequest) -> str:
    """A repository of the test's own."""
    return f"me/{request.node.name}"


@pytest.fixture
def url(repository: str) -> str:
    return f"hf://{repository}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle's folder that a test may change."""
    return Path(shutil.copytree(list_bundles()["cpu-multi"], tmp_path / "mine"))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset.create(tmp_path / "mine")
    fill(made, 3, parts=2)
    fill(Dataset.create(made.path / "heldout"))
    return made


def change_model(folder: Path) -> None:
    """Change one file of a bundle, and its hash."""
    model, manifest = folder / "model" / "model.txt", folder / "bundle.json"
    before = sha256_of(model)
    with model.open("a") as file:
        file.write("\n")
    manifest.write_text(manifest.read_text().replace(before, sha256_of(model)))


def programs_of(dataset: Dataset) -> list[str]:
    return sorted(dataset.scan().collect()["program_id"])


def workloads_of(dataset: Dataset) -> list[str]:
    return sorted(set(dataset.scan().collect()["workload_id"]))


def programs(client: Client, url: str) -> list[str]:
    return client.get(f"sorted(Dataset.open({url!r}).scan().collect()['program_id'])")


def blobs(home: Path, repository: str) -> dict[Path, str]:
    """What the hub's own cache has of a repository."""
    name = "--".join(repository.split("/"))
    found = [path for path in (home / "hf").rglob(f"*s--{name}/blobs/*") if path.is_file()]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def digests(folder: Path) -> list[str]:
    """Of the contents of each file in a bundle's folder; two files may have the same."""
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]


def test_a_bundle_is_published_and_fetched_once(
    hub: HubServer, client: Client, folder: Path, url: str, repository: str
) -> None:
    publish = f"publish(load_pretrained({str(folder)!r}), {url!r})"
    load = f"load_pretrained({url!r}).manifest.metrics['top1']"
    assert client.get(publish) == url
    files = json.loads((folder / "bundle.json").read_bytes())["files"]
    everything = {*files, "bundle.json", "README.md"}
    assert [len(c.files) for c in hub.commits["models", repository]] == [1, 1 + len(everything)]
    assert "made by costlib" in hub.head("models", repository).message

    first = client.get(load)
    assert len({*hub.sent}) == len(hub.sent) == len({*digests(folder)}), "each content once"
    assert everything.issuperset(hub.sent)
    hub.sent.clear()
    assert client.get(load) == first
    assert hub.sent == []

    change_model(folder)
    client.get(publish)
    assert len(hub.commits["models", repository]) == 3, "one commit for several files"
    client.get(load)
    assert sorted(hub.sent) == ["bundle.json", "model/model.txt"]

    with hub.gone():
        offline = client.ask(load)
        assert offline.value == first and "copy fetched before is used" in offline.warnings[0]
        never = client.ask("load_pretrained('hf://me/another')")
        assert never.error is not None and "\n" not in never.error
        assert never.error.startswith("HubError: hf://me/another cannot be reached: ")
    assert client.get(load) == first


def test_a_pinned_bundle_stays_what_it_was(
    hub: HubServer, client: Client, folder: Path, url: str, repository: str
) -> None:
    publish = f"publish(load_pretrained({str(folder)!r}), {url!r})"
    client.get(publish)
    first = hub.head("models", repository).sha
    text = "(load_pretrained(%r).path / 'model/model.txt').read_text()"
    before = client.get(text % url)
    change_model(folder)
    client.get(publish)
    assert client.get(text % url) != before
    assert client.get(text % f"{url}@{first}") == before
    unknown = client.ask(text % f"{url}@{'0' * 40}").error
    assert unknown is not None and "has no revision 000" in unknown and "\n" not in unknown
    refused = client.ask(f"publish(load_pretrained({str(folder)!r}), '{url}@{first}')").error
    assert refused is not None and f"publish to {url}" in refused


def test_published_bundles_are_listed(hub: HubServer, client: Client, folder: Path) -> None:
    for name in ("them/cpu-one", "them/cpu-two", "them/damaged"):
        client.get(f"publish(load_pretrained({str(folder)!r}), 'hf://{name}')")
    hub.change("models", "them/damaged", "bundle.json", b"{")
    hub.commit("models", "them/other", "by hand", {"README.md": File(b"another library", False)})
    listed = "[(one.address, one.revision) for one in list_published(%s)]"
    sha = {name: hub.head("models", name).sha for name in ("them/cpu-one", "them/cpu-two")}
    found = client.ask(listed % "'hf://them'")
    assert found.value == [[f"hf://{name}", sha[name]] for name in sha]
    assert len(found.warnings) == 1 and "hf://them/damaged" in found.warnings[0]
    assert client.get(listed % "pattern='them/*-two'") == [
        ["hf://them/cpu-two", sha["them/cpu-two"]]
    ]
    assert client.get(listed % "'hf://nobody'") == []
    assert client.get(listed % f"'file://{folder.parent}'") == [[f"file://{folder}", None]]
    assert client.get(listed % "'file:///no/such/folder'") == []


def test_a_bundle_comes_out_of_the_hubs_own_cache(
    hub: HubServer, client: Client, folder: Path, url: str, repository: str, home: Path
) -> None:
    client.get(f"publish(load_pretrained({str(folder)!r}), {url!r})")
    copy = Path(client.get(f"fetch({url!r})"))
    hub.sent.clear()
    kept = blobs(home, repository)
    assert sorted(kept.values()) == sorted({*digests(copy)})
    shutil.rmtree(copy)
    assert client.get(f"fetch({url!r})") == str(copy)
    assert hub.sent == [] and blobs(home, repository) == kept


def test_damage_in_the_hubs_own_cache_is_mended(
    hub: HubServer, client: Client, folder: Path, url: str, repository: str, home: Path
) -> None:
    client.get(f"publish(load_pretrained({str(folder)!r}), {url!r})")
    copy = Path(client.get(f"fetch({url!r})"))
    hub.sent.clear()
    sound = (copy / "model" / "model.txt").read_bytes()
    (copy / "model" / "model.txt").write_bytes(sound[:-1] + b"x")  # Which is linked to there.
    (copy / "model" / "config.json").write_bytes(b"")
    client.get(f"str(load_pretrained({url!r}))")
    assert (copy / "model" / "model.txt").read_bytes() == sound
    assert sorted(hub.sent) == ["model/config.json", "model/model.txt"]


def test_bundles_that_are_none(
    hub: HubServer, client: Client, folder: Path, url: str, repository: str
) -> None:
    def error() -> str:
        answer = client.ask(f"load_pretrained({url!r})")
        assert answer.error is not None and "\n" not in answer.error
        return answer.error

    nothing = f"BundleError: there is no bundle at {url}: bundle.json is missing; if it is private"
    assert error().startswith(nothing)
    client.get(f"publish(load_pretrained({str(folder)!r}), {url!r})")
    good = hub.head("models", repository).files
    hub.secret.add(repository)
    assert error().startswith(nothing)
    hub.secret.clear()
    hub.change("models", repository, "bundle.json", None)
    assert error().startswith(nothing)
    hub.commit("models", repository, "back", good)
    hub.change("models", repository, "model/model.txt", b"tree\n")
    assert error().startswith(f"BundleError: {url}/model/model.txt was changed after")
    hub.change("models", repository, "model/model.txt", None)
    assert error().startswith(f"BundleError: {url} is incomplete: model/model.txt is missing")
    manifest = good["bundle.json"].content
    for outside in (b"../escaped", b"/escaped", b"model/../../escaped"):
        hub.change(
            "models",
            repository,
            "bundle.json",
            manifest.replace(b'"model/model.txt"', b'"' + outside + b'"'),
        )
        assert "names a file outside the bundle" in error()
    hub.commit("models", repository, "back", good)
    client.get(f"str(load_pretrained({url!r}))")


def test_two_who_publish_at_once_do_not_mix(
    hub: HubServer, client: Client, folder: Path, url: str, repository: str
) -> None:
    publish = f"publish(load_pretrained({str(folder)!r}), {url!r})"
    client.get(publish)
    change_model(folder)
    hub.meanwhile = lambda: hub.change("models", repository, "NOTES.md", b"another's")
    refused = client.ask(publish).error
    assert refused is not None and refused.startswith("HubError: ") and "412" in refused
    client.get(publish)
    assert "NOTES.md" in hub.head("models", repository).files, "it is not ours"


def test_a_dataset_is_published_and_fetched_once(
    hub: HubServer, client: Client, dataset: Dataset, url: str, repository: str
) -> None:
    publish = f"publish_dataset(Dataset.open({str(dataset.path)!r}), {url!r})"
    (dataset.path / "features").mkdir()
    (dataset.path / "features" / "part-0.parquet").write_bytes(b"not to be published")
    assert client.get(publish) == url
    assert len(hub.commits["datasets", repository]) == 2
    assert "features/part-0.parquet" not in hub.head("datasets", repository).files
    assert programs(client, url) == programs_of(dataset)
    hub.sent.clear()
    assert programs(client, url) == programs_of(dataset)
    assert hub.sent == []

    dataset.append_measurements(hardware().hardware_id, [measurement(7)])
    client.get(publish)
    assert programs(client, url) == programs_of(dataset)
    assert len(hub.sent) == 1 and hub.sent[0].startswith("measurements/")

    compact(dataset)
    client.get(publish)
    assert len(hub.commits["datasets", repository]) == 4
    assert programs(client, url) == programs_of(dataset)
    copy = client.get(f"len(Dataset.open({url!r}).part_files('measurements'))")
    assert copy == len(dataset.part_files("measurements")) == 1

    with hub.gone():
        offline = client.ask(f"Dataset.open({url!r}).scan().collect().height")
        assert offline.value == 7 and "copy fetched before is used" in offline.warnings[0]
        never = client.ask("Dataset.open('hf://me/another')").error
        assert never is not None and never.startswith("HubError: hf://me/another cannot be reached")


def test_a_dataset_is_compacted_while_it_is_fetched(
    hub: HubServer, client: Client, dataset: Dataset, url: str, repository: str
) -> None:
    client.get(f"publish_dataset(Dataset.open({str(dataset.path)!r}), {url!r})")

    def replace_parts() -> None:
        compact(dataset)
        files = {
            path.relative_to(dataset.path).as_posix(): File(path.read_bytes(), True)
            for path in dataset.path.rglob("*")
            if path.is_file()
        }
        hub.commit("datasets", repository, "compacted", files)

    hub.meanwhile = replace_parts
    assert programs(client, url) == programs_of(dataset)
    assert client.get(f"len(Dataset.open({url!r}).part_files('measurements'))") == 1


def test_a_fetched_dataset_is_worked_on(
    hub: HubServer, client: Client, measured_dataset: Dataset, url: str, repository: str, home: Path
) -> None:
    """Features come into its folder and its parts are compacted; the hub's cache stays as it is."""
    client.get(f"publish_dataset(Dataset.open({str(measured_dataset.path)!r}), {url!r})")
    copy = Path(client.get(f"fetch_dataset({url!r})"))
    kept = blobs(home, repository)
    assert {path.name: digest for path, digest in kept.items() if digest == path.name}
    hub.sent.clear()
    fetched = Dataset.open(copy)
    (hardware_id,) = fetched.hardware()
    rows = build_features(fetched, hardware_id).known(workloads_of(fetched)[0])
    assert len(rows)
    features = sorted((copy / "features").rglob("*.parquet"))
    compact(fetched)
    write_card(fetched)
    assert blobs(home, repository) == kept
    assert programs(client, url) == programs_of(measured_dataset)
    assert len(Dataset.open(copy).part_files("measurements")) == len(
        measured_dataset.part_files("measurements")
    ), "a copy is a copy again"
    assert sorted((copy / "features").rglob("*.parquet")) == features
    assert hub.sent == [], "all of it is in the hub's own cache"
    assert blobs(home, repository) == kept


def test_datasets_that_are_none(
    hub: HubServer, client: Client, dataset: Dataset, url: str, repository: str
) -> None:
    def error() -> str:
        answer = client.ask(f"Dataset.open({url!r})")
        assert answer.error is not None and "\n" not in answer.error
        return answer.error

    assert error().startswith(f"DatasetError: there is no dataset at {url}: dataset.json is")
    client.get(f"publish_dataset(Dataset.open({str(dataset.path)!r}), {url!r})")
    good = hub.head("datasets", repository).files
    hub.change("datasets", repository, "hardware/large.json", b" " * (2 << 20))
    assert error() == (
        "DatasetError: hardware/large.json has 2,097,152 bytes, too many to be what it should"
    )
    hub.commit("datasets", repository, "back", good)
    for name in ("../escaped.parquet", "/escaped.parquet", "measurements/../../escaped.parquet"):
        hub.change("datasets", repository, name, b"escaped")
    hub.change("datasets", repository, "setup.py", b"raise SystemExit")
    assert programs(client, url) == programs_of(dataset)
    assert not any("escaped" in name or name == "setup.py" for name in hub.sent)
