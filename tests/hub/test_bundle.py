from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from forked import Popen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.errors import BundleError, DatasetError, StorageError, UnknownNameError
from costlib.features.version import LANGUAGE_VERSION
from costlib.generator.language import VOCABULARY
from costlib.generator.model import Generator
from costlib.generator.transformer import GeneratorConfig
from costlib.hardware import Hardware
from costlib.hub import Bundle, list_bundles, load_pretrained, save_bundle
from costlib.hub.evaluate import evaluate
from costlib.hub.manifest import MANIFEST, sha256_of
from costlib.hub.remote import publish
from costlib.training.batches import assemble


def test_loading_gives_the_same_scores(bundle: Bundle, dataset: Dataset) -> None:
    again = load_pretrained(bundle.path)
    batch = assemble(dataset).batch
    np.testing.assert_array_equal(again.model.predict(batch), bundle.model.predict(batch))


def test_manifest_says_how_it_was_made(bundle: Bundle, dataset: Dataset) -> None:
    manifest = bundle.manifest
    assert manifest.command.startswith("costlib train ")
    assert manifest.trained_on.tasks == 2
    assert len(manifest.trained_on.held_out) == 1
    assert not set(manifest.trained_on.held_out) & set(manifest.trained_on.trained)
    assert 0 <= manifest.metrics["pairwise_accuracy"] <= 1
    hardware_id = next(iter(dataset.hardware()))
    assert bundle.canary(hardware_id) == dataset.canary(hardware_id)
    assert bundle.canary("another") is None


def test_priors_come_with_the_bundle(bundle: Bundle) -> None:
    assert bundle.priors is not None
    again = Bundle.load(bundle.path).priors
    assert again is not None
    assert again.table.equals(bundle.priors.table)
    assert set(bundle.manifest.files) >= {"priors/priors.parquet"}


def test_card_shows_the_metrics(bundle: Bundle) -> None:
    card = (bundle.path / "README.md").read_text()
    assert card.startswith("---\nlicense: apache-2.0")
    assert f"{bundle.manifest.metrics['top5']:.4f}" in card


def test_a_changed_file_is_refused(bundle_copy: Path) -> None:
    with (bundle_copy / "model" / "model.txt").open("a") as file:
        file.write("\n")
    with pytest.raises(BundleError, match=r"model\.txt was changed"):
        Bundle.load(bundle_copy)


def test_names_of_columns_that_came_later_are_refused(bundle_copy: Path) -> None:
    manifest = json.loads((bundle_copy / MANIFEST).read_text())
    del manifest["files"]["draft/columns.json"]
    (bundle_copy / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"draft/columns\.json was changed"):
        Bundle.load(bundle_copy)


def test_columns_of_a_later_version_are_refused(bundle_copy: Path) -> None:
    file = bundle_copy / "draft" / "columns.json"
    file.write_text(json.dumps(["task.flops", "task.colour"]))
    manifest = json.loads((bundle_copy / MANIFEST).read_text())
    manifest["files"]["draft/columns.json"] = sha256_of(file)
    (bundle_copy / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"'task\.colour', which this costlib does not compute"):
        Bundle.load(bundle_copy)


def test_a_missing_file_is_refused(bundle_copy: Path) -> None:
    (bundle_copy / "model" / "config.json").unlink()
    with pytest.raises(BundleError, match=r"incomplete: model/config\.json is missing"):
        Bundle.load(bundle_copy)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format_version", 99, "format 99, this costlib reads 1"),
        ("format_version", "é\n", r"format 'é\\n'"),
        ("feature_version", "older", "trained on features 'older'"),
        ("files", {"../../etc/passwd": "0"}, "outside the bundle"),
        ("files", {"/etc/passwd": "0"}, "outside the bundle"),
        ("files", {"../\n": "0"}, r"outside the bundle: '../\\n'"),
        ("model_kind", "gbd", "did you mean gbdt"),
        ("hardware", "none", "damaged"),
        ("surprise", 1, "damaged"),
    ],
)
def test_manifests_that_do_not_fit(
    bundle_copy: Path, key: str, value: object, message: str
) -> None:
    manifest = json.loads((bundle_copy / MANIFEST).read_text())
    (bundle_copy / MANIFEST).write_text(json.dumps(manifest | {key: value}))
    with pytest.raises((BundleError, UnknownNameError), match=message) as error:
        Bundle.load(bundle_copy)
    assert "\n" not in str(error.value)


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_garbage_manifests_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(BundleError):
        Bundle.load(tmp_path)


def test_saving_over_something_else_is_refused(tmp_path: Path, bundle: Bundle) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(BundleError, match="no bundle; choose another"):
        save_again(bundle, tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_saving_over_a_bundle_replaces_it_if_told_to(bundle_copy: Path, bundle: Bundle) -> None:
    (bundle_copy / "left-over.txt").write_text("old")
    with pytest.raises(BundleError, match="holds a bundle already; --replace"):
        save_again(bundle, bundle_copy, replace=False)
    assert (bundle_copy / "left-over.txt").exists()
    save_again(bundle, bundle_copy)
    assert not (bundle_copy / "left-over.txt").exists()
    assert Bundle.load(bundle_copy).name == bundle_copy.name


SAVE_AGAIN = """
import sys
from costlib.hub import Bundle, save_bundle
bundle = Bundle.load(sys.argv[1])
about = bundle.manifest
print("begun", flush=True)
for seed in range(10):
    save_bundle(
        sys.argv[1],
        bundle.model,
        draft=bundle.draft if seed % 2 else None,
        priors=None if seed % 2 else bundle.priors,
        command="",
        seed=seed,
        hardware=about.hardware,
        trained_on=about.trained_on,
        metrics=about.metrics,
        replace=True,
    )
"""


def test_it_is_whole_while_it_is_saved_again(bundle_copy: Path) -> None:
    writer = Popen(
        [sys.executable, "-c", SAVE_AGAIN, str(bundle_copy)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    seeds = []
    while writer.poll() is None:
        found = Bundle.load(bundle_copy)
        seeds.append(found.manifest.seed)
        assert (found.draft is None) == (found.manifest.draft_kind is None)
    assert writer.returncode == 0
    assert seeds and Bundle.load(bundle_copy).manifest.seed == 9


def test_a_generator_is_that_of_its_bundle(bundle: Bundle, tmp_path: Path) -> None:
    def save(seed: int) -> Bundle:
        config = GeneratorConfig(width=32, layers=1)
        generator = Generator(VOCABULARY, LANGUAGE_VERSION, config, seed)
        return save_again(bundle, tmp_path / "mine", generator=generator)

    first = save(1)
    read = Bundle.load(first.path)
    assert read.generator is read.require_generator() is not None
    second = save(2)
    assert read.require_generator() is read.generator, "it was read before"
    with pytest.raises(BundleError, match=r"generator/\S+ was changed"):
        first.require_generator()
    assert second.generator is not None
    save_again(bundle, tmp_path / "mine")
    assert Bundle.load(first.path).generator is None
    with pytest.raises(BundleError, match=r"generator/\S+ is missing"):
        replace(second).require_generator()


def test_a_full_disk_leaves_the_old_bundle(
    bundle_copy: Path, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(bundle.model), "save", full)
    with pytest.raises(StorageError) as error:
        save_again(bundle, bundle_copy)
    assert "\n" not in str(error.value)
    Bundle.load(bundle_copy)
    assert [path.name for path in bundle_copy.parent.iterdir()] == [bundle_copy.name]


def save_again(
    bundle: Bundle, out: Path, generator: Generator | None = None, replace: bool = True
) -> Bundle:
    manifest = bundle.manifest
    return save_bundle(
        out,
        bundle.model,
        generator=generator,
        command=manifest.command,
        seed=manifest.seed,
        hardware=manifest.hardware,
        trained_on=manifest.trained_on,
        metrics=manifest.metrics,
        replace=replace,
    )


def test_evaluation_is_on_unseen_tasks(bundle: Bundle, dataset: Dataset) -> None:
    found = evaluate(bundle, dataset)
    assert found.tasks == 1
    assert found.top1 == bundle.manifest.metrics["top1"]
    assert evaluate(bundle, dataset, everything=True).tasks == 3


def test_a_dataset_that_was_all_trained_on(
    bundle: Bundle, dataset: Dataset, tmp_path: Path
) -> None:
    copy = Dataset.open(shutil.copytree(dataset.path, tmp_path / "copy"))
    held_out = set(bundle.manifest.trained_on.held_out)
    for part in (copy.path / "measurements").rglob("part-*.parquet"):
        import polars as pl

        if set(pl.read_parquet(part)["workload_id"]) & held_out:
            part.unlink()
    with pytest.raises(DatasetError, match="trained on all tasks"):
        evaluate(bundle, copy)


def test_shipped_bundles_load() -> None:
    assert "cpu-gbdt" in list_bundles()
    for name in list_bundles():
        assert load_pretrained(name).name == name


def test_patterns() -> None:
    assert set(list_bundles("cpu-*")) <= set(list_bundles())
    assert list_bundles("no-such-*") == {}


def test_unknown_bundle() -> None:
    with pytest.raises(UnknownNameError, match="did you mean cpu-gbdt"):
        load_pretrained("cpu-gdbt")


def test_a_file_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="is a file"):
        load_pretrained(tmp_path / "file")
    with pytest.raises(BundleError, match="is no bundle"):
        publish(load_pretrained(), str(tmp_path / "file"))


@pytest.mark.parametrize("name", ["", "a\0b", "..", "/"])
def test_names_that_can_be_none(name: str) -> None:
    with pytest.raises((BundleError, UnknownNameError)):
        load_pretrained(name)


def test_a_bundle_that_was_moved_aside_is_put_back(bundle_copy: Path) -> None:
    """As a save leaves it that is killed where folders cannot change places in one step."""
    aside = bundle_copy.with_name(f".tmp-{bundle_copy.name}-{16 * '0'}") / "old-0"
    for load in (Bundle.load, load_pretrained):
        aside.parent.mkdir(exist_ok=True)
        bundle_copy.rename(aside)
        assert load(bundle_copy).path == bundle_copy


def test_it_says_what_it_has_not_seen(bundle: Bundle, hardware: Hardware) -> None:
    assert bundle.unknown(hardware) == ""
    other = hardware.model_copy(update={"model": "another"})
    assert bundle.unknown(other).endswith(f"no measurement of {other.hardware_id}")
    wide = other.model_copy(update={"vector_bits": 4096})
    assert "nor of any with 4096-bit vectors" in bundle.unknown(wide)
    assert "nor of any cuda" in bundle.unknown(Hardware.cuda("sm_80"))
