"""A bundle taught what was measured on other hardware: a dataset in, a better bundle out.

Its cost model and its model of schedules are fine-tuned, each kept as it was unless that makes it
better on tasks kept apart; the best programs measured join its prior bank; what else it has, it
keeps.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.frozen import FrozenStrict
from costlib.generator.fit import fit_generator
from costlib.generator.model import Generator
from costlib.hub.bundle import Bundle, check_place, save_bundle
from costlib.hub.catalog import load_pretrained
from costlib.hub.collect_priors import collect_priors
from costlib.hub.manifest import HardwareEntry, TrainedOn
from costlib.identity import content_id
from costlib.models.base import CostModel
from costlib.training.batches import Chosen, Progress, chosen_hardware, measured_rows
from costlib.training.fine_tuning import Comparison, FineTuned, fine_tune_model
from costlib.training.metrics import calibrate_pairs
from costlib.training.sides import sides_of

KEY = "fine_tuned"
"""Where a manifest's metrics have :class:`FineTuning`."""


class FineTuning(FrozenStrict):
    """From what a bundle was fine-tuned, with what, and what it gained.

    Attributes
    ----------
    bundle, revision
        The name of the bundle that it started from, and the hash of that one's files.
    dataset, hardware
        The dataset's name, and the ids of the hardware that it was measured on.
    tasks, programs
        How many it learnt from.
    judged
        ``"apart"`` if the tasks judged on were never learnt from, ``"in turn"`` if all were judged
        by models that had not learnt from them, and the one in the bundle learnt from all.
    model, draft
        The cost model and the model of schedules, before and after.
    priors
        How many programs the prior bank has gained.
    """

    bundle: str
    revision: str
    dataset: str
    hardware: tuple[str, ...]
    tasks: int
    programs: int
    judged: str
    model: Comparison
    draft: Comparison | None
    priors: int

    @property
    def kept(self) -> dict[str, str]:
        """Which of two each model is: ``"pretrained"`` or ``"fine-tuned"``."""
        kept = {"model": self.model.kept}
        return kept if self.draft is None else kept | {"draft": self.draft.kept}


def fine_tuning_of(bundle: Bundle) -> FineTuning | None:
    """Return how a bundle was fine-tuned, ``None`` if it was not."""
    found = bundle.manifest.metrics.get(KEY)
    return None if found is None else FineTuning.model_validate(found)


def fine_tune(
    dataset: Dataset | str | Path,
    out: str | Path,
    *,
    start: Bundle | str | Path,
    hardware: Collection[str] | None = None,
    held_out_share: float | None = None,
    apart: Collection[str] | None = None,
    seed: int = 0,
    generator_epochs: int | None = None,
    command: str | None = None,
    notes: Callable[[FineTuning], Mapping[str, Any]] | None = None,
    replace: bool = False,
    on_progress: Progress = None,
) -> Bundle:
    """Teach a bundle what was measured on one's own hardware, and save what comes of it.

    Parameters
    ----------
    dataset
        A dataset, its folder or its address.
    out
        The new bundle's folder.
    start
        The bundle to start from, or what :func:`costlib.load_pretrained` takes.
    hardware
        Ids of the hardware to learn from and to judge on; all of the dataset's if not given.
    held_out_share
        Share of the tasks to keep apart for judging. If not given: the dataset's held-out tasks;
        without any, a fifth of many tasks; few are judged in turn, and all learnt from.
    apart
        Ids of the workloads to keep apart, instead.
    seed
        Decides the split and the fit.
    generator_epochs
        Train the bundle's generator further, for so many epochs.
    command
        What is noted as the command that makes the bundle again, if not ``costlib train``.
    notes
        Says what to note beside the metrics of the models, when it is known how they compare.
    replace
        Let the bundle take the place of another one at ``out``, in one step at the end.
    on_progress
        Called with (done, total) programs while features are computed.

    Returns
    -------
    Bundle
        :func:`fine_tuning_of` says how it compares with the one it started from. Each model that
        did not get better is kept as it was.

    Raises
    ------
    BundleError
        Something is at ``out`` already, or ``start`` is damaged or of another version.
    DatasetError
        The dataset is incomplete or damaged, or has fewer than two tasks.
    StorageError
        ``out`` cannot be written.
    """
    out = Path(out)
    check_place(out, replace=replace)
    bundle = start if isinstance(start, Bundle) else load_pretrained(start)
    generator = bundle.generator if generator_epochs is None else bundle.require_generator()
    source = dataset.path if isinstance(dataset, Dataset) else dataset
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
    check_complete(dataset)
    known = chosen_hardware(dataset, hardware)
    for one in known.values():
        bundle.check_kind(one)
    sides = sides_of(dataset, hardware, held_out_share, apart, seed)

    def taught(model: CostModel) -> FineTuned:
        data = sides.read(model.view, on_progress)
        return fine_tune_model(model, data, sides.folds, sides.apart, seed=seed)

    model = taught(bundle.model)
    draft = None if bundle.draft is None else taught(bundle.draft)
    learnt = measured_rows(dataset, hardware, sides.learnt).collect()
    trained = set(learnt["workload_id"])
    found = collect_priors(dataset, only=trained, hardware=known)
    priors = found if bundle.priors is None else bundle.priors.joined(found)
    if generator is not None and generator_epochs is not None:
        generator = _trained_further(
            generator, generator_epochs, dataset, trained, hardware, draft, seed, out, on_progress
        )
    before = bundle.manifest
    tuning = FineTuning(
        bundle=bundle.name,
        revision=content_id(before.files),
        dataset=dataset.path.name,
        hardware=tuple(known),
        tasks=len(trained),
        programs=learnt["program_id"].n_unique(),
        judged="in turn" if sides.apart is None else "apart",
        model=model.comparison,
        draft=None if draft is None else draft.comparison,
        priors=len(priors.table) - (0 if bundle.priors is None else len(bundle.priors.table)),
    )
    entries = {entry.hardware.hardware_id: entry for entry in before.hardware}
    entries |= {
        hardware_id: HardwareEntry(hardware=one, canary=dataset.canary(hardware_id))
        for hardware_id, one in known.items()
    }
    saved = save_bundle(
        out,
        model.model,
        draft=None if draft is None else draft.model,
        directions=bundle.directions,
        priors=priors,
        generator=generator,
        command=command
        or _command(source, start, bundle, out, hardware, held_out_share, generator_epochs, seed),
        seed=seed,
        hardware=tuple(entries.values()),
        trained_on=TrainedOn(
            dataset=f"{before.trained_on.dataset}, {dataset.path.name}",
            tasks=len(trained.union(before.trained_on.trained)),
            programs=before.trained_on.programs + tuning.programs,
            trained=tuple(sorted(trained.union(before.trained_on.trained))),
            held_out=tuple(sorted(sides.apart or ())),
        ),
        metrics=_metrics(model, draft, before.metrics)
        | {KEY: tuning.model_dump(mode="json")}
        | dict(notes(tuning) if notes else {}),
        replace=replace,
    )
    shutil.rmtree(_checkpoints(out), ignore_errors=True)
    return saved


def _metrics(
    model: FineTuned, draft: FineTuned | None, before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a manifest says of models, and of mutation directions as they were."""
    judged = model.judged
    found = model.comparison.after.model_dump()
    found["calibration"] = calibrate_pairs(
        model.scores, judged.latency_s, judged.groups
    ).model_dump()
    if draft is not None:
        found["draft"] = draft.comparison.after.model_dump()
    return found | {key: before[key] for key in ("directions",) if key in before}


def _trained_further(
    generator: Generator,
    epochs: int,
    dataset: Dataset,
    trained: Collection[str],
    hardware: Chosen,
    draft: FineTuned | None,
    seed: int,
    out: Path,
    on_progress: Callable[[int, int], None] | None,
) -> Generator:
    return fit_generator(
        dataset,
        only=trained,
        hardware=hardware,
        config=generator.config.model_copy(update={"epochs": epochs}),
        start=generator,
        teacher=None if draft is None else draft.model,
        seed=seed,
        checkpoints=_checkpoints(out),
        on_progress=on_progress,
    )


def _checkpoints(out: Path) -> Path:
    return out.with_name(f".{out.name}-training")


def _command(
    source: str | Path,
    start: Bundle | str | Path,
    bundle: Bundle,
    out: Path,
    hardware: Chosen,
    share: float | None,
    generator_epochs: int | None,
    seed: int,
) -> str:
    name = bundle.name if isinstance(start, Bundle) else str(start)
    command = ["costlib", "train", str(source), "--from", name, "--out", str(out)]
    if share is not None:
        command += ["--held-out", str(share)]
    for hardware_id in hardware or ():
        command += ["--hardware", hardware_id]
    if generator_epochs is not None:
        command += ["--generator-epochs", str(generator_epochs)]
    return shlex.join([*command, "--seed", str(seed)])
