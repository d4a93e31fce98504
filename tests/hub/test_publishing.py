"""Nothing that is published, trained or refined takes the place of something else unasked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from costlib.collecting.plan import CollectionPlan
from costlib.collecting.refine import refine
from costlib.data.dataset import Dataset
from costlib.data.remote import publish_dataset
from costlib.errors import BundleError, DatasetError, InputError, StorageError
from costlib.hub import Bundle
from costlib.hub.manifest import MANIFEST
from costlib.hub.remote import publish
from costlib.hub.train import train

Publish = Callable[..., str]


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def another(bundle_copy: Path) -> Bundle:
    manifest = bundle_copy / MANIFEST
    manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 7'))
    return Bundle.load(bundle_copy)


@pytest.fixture
def publishers(bundle: Bundle, dataset: Dataset) -> list[Publish]:
    """Of a bundle, and of a dataset."""
    return [
        lambda to, **options: publish(bundle, str(to), **options),
        lambda to, **options: publish_dataset(dataset, str(to), **options),
    ]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("kind", ["bundle", "dataset"])
def test_in_a_folder_it_is_refused_or_a_swap(
    publishers: list[Publish], another: Bundle, tmp_path: Path, number: int, kind: str
) -> None:
    put = publishers[number]
    place = tmp_path / "place"
    if kind == "bundle":
        publish(another, str(place))
    else:
        Dataset.create(place)
    before = content(place)
    with pytest.raises(InputError, match=f"holds a {kind} already; --replace"):
        put(place)
    assert content(place) == before
    put(tmp_path / "alone")
    put(place, replace=True)
    assert content(place) == content(tmp_path / "alone"), "nothing is mixed"
    put(place)
    assert content(place) == content(tmp_path / "alone"), "the same again"


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("name", ["thesis.tex", "run.json"])
def test_nothing_else_is_ever_replaced(
    publishers: list[Publish], tmp_path: Path, number: int, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=r"exists and is no (bundle|dataset); choose another"):
        publishers[number](tmp_path, replace=True)
    assert content(tmp_path) == {name: b"mine"}


def test_what_is_published_is_not_replaced_by_its_own_copy(
    another: Bundle, dataset: Dataset, tmp_path: Path
) -> None:
    around = Dataset.create(tmp_path / "around")
    inside = around.path / "bundle"
    publish(another, str(inside))
    with pytest.raises(InputError, match="cannot take the place of"):
        publish(Bundle.load(inside), str(around.path), replace=True)
    Bundle.load(inside)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_at_an_address(
    bundle: Bundle, another: Bundle, dataset: Dataset, tmp_path: Path, scheme: str
) -> None:
    url = f"{scheme}://{tmp_path}/remote"
    publish(another, f"{url}/bundle")
    publish_dataset(Dataset.create(tmp_path / "empty"), f"{url}/data")
    with pytest.raises(BundleError, match=r"holds another bundle, '.*'; --replace"):
        publish(bundle, f"{url}/bundle")
    with pytest.raises(DatasetError, match="holds another dataset; --replace"):
        publish_dataset(dataset, f"{url}/data")
    for replace in (False, True):
        with pytest.raises(BundleError, match="holds a dataset; choose another"):
            publish(bundle, f"{url}/data", replace=replace)
        with pytest.raises(DatasetError, match="holds a bundle; choose another"):
            publish_dataset(dataset, f"{url}/bundle", replace=replace)
    publish(bundle, f"{url}/bundle", replace=True)
    publish(bundle, f"{url}/bundle")
    publish_dataset(dataset, f"{url}/data", replace=True)
    publish_dataset(dataset, f"{url}/data")


def test_training_is_refused_before_it_begins(
    dataset: Dataset, another: Bundle, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    before = content(another.path)
    for out, replace, told in (
        (another.path, False, "holds a bundle already; --replace"),
        (dataset.path, True, "exists and is no bundle"),
        (tmp_path / "file", True, "exists and is no bundle"),
    ):
        with pytest.raises(BundleError, match=told):
            train("no-such-dataset", out, replace=replace)
    with pytest.raises(StorageError, match="not a directory"):
        train("no-such-dataset", tmp_path / "file" / "bundle")
    assert content(another.path) == before


def test_refining_is_refused_before_it_begins(
    another: Bundle, dataset: Dataset, tmp_path: Path
) -> None:
    plan = CollectionPlan(sources=("no such network",), programs_per_task=1)
    for out, told in (
        (dataset.path, "exists and is no bundle"),
        (another.path, "was not refined here"),
    ):
        with pytest.raises(BundleError, match=told):
            refine(another, plan, tmp_path / "data", out)
    assert not (tmp_path / "data").exists()
