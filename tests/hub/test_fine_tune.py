"""A bundle is taught a dataset: what it says of that, what it keeps, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from costlib.cli.app import run as run_command
from costlib.collecting.plan import CollectionPlan, HeldOutPlan
from costlib.collecting.planned import collect_plan
from costlib.data.dataset import Dataset
from costlib.errors import BundleError, DatasetError, InputError
from costlib.hub import Bundle
from costlib.hub.evaluate import evaluate
from costlib.hub.fine_tuning import fine_tune, fine_tuning_of
from costlib.hub.manifest import MANIFEST
from costlib.hub.remote import publish
from costlib.identity import content_id
from costlib.measure.config import MeasureConfig
from costlib.training.batches import assemble

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Measured by a user: three tasks, and one held out."""
    plan = CollectionPlan(
        sources=("matmul 24 32 16", "dense 16 24 32", "softmax 24 48"),
        programs_per_task=8,
        min_flops=0,
        held_out=HeldOutPlan(networks=("matmul 40 24 16",), programs_per_task=8),
    )
    return collect_plan(plan, tmp_path_factory.mktemp("own") / "mine", config=QUICK)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle, own: Dataset) -> Bundle:
    return fine_tune(own, tmp_path_factory.mktemp("tuned") / "tuned", start=bundle)


def test_it_says_where_it_comes_from(tuned: Bundle, bundle: Bundle, own: Dataset) -> None:
    tuning = fine_tuning_of(tuned)
    assert tuning is not None
    assert (tuning.bundle, tuning.revision) == (bundle.name, content_id(bundle.manifest.files))
    assert (tuning.dataset, tuning.hardware) == ("mine", tuple(own.hardware()))
    assert (tuning.tasks, tuning.programs, tuning.judged) == (3, 24, "apart")
    assert fine_tuning_of(bundle) is None
    manifest = tuned.manifest
    assert manifest.command.startswith(f"costlib train {own.path} --from {bundle.name} --out ")
    assert set(manifest.trained_on.trained) > set(bundle.manifest.trained_on.trained)
    assert manifest.trained_on.programs == bundle.manifest.trained_on.programs + 24
    card = (tuned.path / "README.md").read_text()
    assert f"Fine-tuned from `{bundle.name}` (revision `{tuning.revision}`)" in card
    assert f"{tuning.model.before.top1:.4f} (" in card


def test_it_is_judged_on_what_it_did_not_learn_and_never_worse(tuned: Bundle, own: Dataset) -> None:
    held_out = own.held_out()
    assert held_out is not None
    judged = set(held_out.scan().collect()["workload_id"])
    assert set(tuned.manifest.trained_on.held_out) == judged
    assert not judged & set(tuned.manifest.trained_on.trained)
    tuning = fine_tuning_of(tuned)
    assert tuning is not None and tuning.draft is not None
    for one in (tuning.model, tuning.draft):
        assert one.after.tasks == 1
        assert one.after.top1 >= one.before.top1
        assert one.after.top5 >= one.before.top5
    assert tuned.manifest.metrics["top1"] == tuning.model.after.top1
    assert evaluate(tuned, own).pooled.top1 == pytest.approx(tuning.model.after.top1)  # type: ignore[union-attr]


def test_a_model_that_is_kept_scores_the_same(tuned: Bundle, bundle: Bundle, own: Dataset) -> None:
    tuning = fine_tuning_of(tuned)
    assert tuning is not None
    assert tuned.draft is not None and bundle.draft is not None
    models = {"model": (tuned.model, bundle.model), "draft": (tuned.draft, bundle.draft)}
    for part, (now, before) in models.items():
        batch = assemble(own, view=now.view).batch
        same = bool((now.predict(batch) == before.predict(batch)).all())
        assert same == (tuning.kept[part] == "pretrained")


def test_few_tasks_are_judged_in_turn(tmp_path: Path, bundle: Bundle, dataset: Dataset) -> None:
    tuned = fine_tune(dataset, tmp_path / "out", start=bundle)
    tuning = fine_tuning_of(tuned)
    assert tuning is not None
    assert (tuning.judged, tuning.tasks, tuning.model.before.tasks) == ("in turn", 3, 3)
    assert tuned.manifest.trained_on.held_out == ()
    assert (
        "in turn, each by a model that did not learn from it"
        in (tuned.path / "README.md").read_text()
    )


def test_priors_join(tuned: Bundle, bundle: Bundle, own: Dataset) -> None:
    assert tuned.priors is not None and bundle.priors is not None
    tuning = fine_tuning_of(tuned)
    assert tuning is not None
    assert len(tuned.priors.table) == len(bundle.priors.table) + tuning.priors
    mine = set(own.scan().collect()["workload_id"])
    banked = tuned.priors.table.filter(pl.col("workload_id").is_in(list(mine)))
    assert set(banked["workload_id"]) == mine
    again = tuned.priors.joined(tuned.priors).table
    assert again.equals(tuned.priors.table)


def test_it_publishes_and_can_be_taught_again(
    tmp_path: Path, tuned: Bundle, dataset: Dataset
) -> None:
    shelf = Bundle.load(publish(tuned, str(tmp_path / "shelf")))
    assert shelf.manifest == tuned.manifest
    again = fine_tuning_of(fine_tune(dataset, tmp_path / "again", start=shelf, held_out_share=0.4))
    assert again is not None
    assert (again.bundle, again.judged) == ("tuned", "apart")


def test_hardware_is_known_afterwards(tuned: Bundle, bundle: Bundle, own: Dataset) -> None:
    for hardware_id, hardware in own.hardware().items():
        assert tuned.unknown(hardware) == ""
        assert tuned.canary(hardware_id) == own.canary(hardware_id)
    known = {entry.hardware.hardware_id for entry in bundle.manifest.hardware}
    assert known <= {entry.hardware.hardware_id for entry in tuned.manifest.hardware}


def test_the_command(
    tmp_path: Path,
    bundle: Bundle,
    dataset: Dataset,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = ["costlib", "train", str(dataset.path), "--from", str(bundle.path)]
    monkeypatch.setattr("sys.argv", [*command, "--out", str(out), "--json"])
    assert run_command() == 0
    values = json.loads(capsys.readouterr().out)
    assert values["after"]["top1"] >= values["before"]["top1"]
    assert set(values["kept"]) == {"model", "draft"}
    assert f"--from {bundle.path}" in Bundle.load(out).manifest.command
    monkeypatch.setattr("sys.argv", [*command, "--out", str(out), "--replace"])
    assert run_command() == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "judged on 3 tasks, each by a model that had not seen it" in shown
    monkeypatch.setattr("sys.argv", [*command, "--out", str(out), "--model", "mlp"])
    assert run_command() == 2
    assert "leave --model, --generator-from and --cluster out" in capsys.readouterr().err


def test_what_is_refused(
    tmp_path: Path, bundle: Bundle, bundle_copy: Path, dataset: Dataset
) -> None:
    with pytest.raises(BundleError, match="holds a bundle already"):
        fine_tune(dataset, bundle_copy, start=bundle)
    with pytest.raises(InputError, match="between 0 and 1"):
        fine_tune(dataset, tmp_path / "out", start=bundle, held_out_share=2)
    with pytest.raises(InputError, match="has no generator"):
        fine_tune(dataset, tmp_path / "out", start=bundle, generator_epochs=1)
    with pytest.raises(DatasetError, match="too few measured tasks"):
        fine_tune(Dataset.create(tmp_path / "empty"), tmp_path / "out", start=bundle)
    manifest = bundle_copy / MANIFEST
    manifest.write_text(manifest.read_text().replace('"nests-', '"other-'))
    with pytest.raises(BundleError, match="was trained on features 'other-"):
        fine_tune(dataset, tmp_path / "out", start=bundle_copy)
    assert not (tmp_path / "out").exists()
