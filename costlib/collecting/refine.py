"""A generator learns from what it writes: write, measure, learn, round after round (TLM, OSDI'24).

On a fleet the machine here has nothing to measure, so it learns from one round while the next is
measured; what is written then is one round behind. Alone it does one after the other, since
learning would disturb what is measured. Killed at any moment, the next call goes on: what was
measured is in the dataset, what was learnt in the bundle, what was being learnt in a checkpoint.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from costlib.collecting.plan import CollectionPlan, Mix
from costlib.collecting.planned import collect_plan
from costlib.data.dataset import Dataset
from costlib.errors import BundleError, InputError
from costlib.generator.fit import fit_generator
from costlib.hub.bundle import Bundle, check_place, holds_bundle, save_bundle
from costlib.measure.config import MeasureConfig
from costlib.places import check_writable

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

_ROUNDS = "refined_rounds"


@dataclass(frozen=True)
class RefineProgress:
    """Where the rounds stand.

    Attributes
    ----------
    number, rounds
        The round, counted from 1, and how many there are.
    what
        ``"measuring"`` or ``"learning"``.
    done, total
        Programs measured and wanted, or steps of learning.
    """

    number: int
    rounds: int
    what: str
    done: int
    total: int


def refine(
    bundle: Bundle,
    plan: CollectionPlan,
    data: str | Path,
    out: str | Path,
    *,
    rounds: int = 3,
    epochs: int = 1,
    fleet: Fleet | None = None,
    config: MeasureConfig | None = None,
    on_progress: Callable[[RefineProgress], None] | None = None,
) -> Bundle:
    """Let a bundle's generator write programs, measure them and learn from all of them.

    Parameters
    ----------
    bundle
        A bundle with a generator.
    plan
        Of which sources, on which hardware, and how many programs of each task a round measures;
        how they are made is not up to it.
    data
        The folder of a dataset for what is measured, and for nothing else.
    out
        The folder of the bundle with the refined generator, written after every round. One that
        an earlier call has left there is gone on from.
    rounds
        How many, those of earlier calls included.
    epochs
        Passes over what was measured, in each round.
    fleet
        Measure on its devices.
    config
        Repeats, limits and racing.
    on_progress
        Called after each batch and each step of learning, the latter from another thread.

    Raises
    ------
    InputError
        The bundle has no generator, or there is no round.
    BundleError
        What is at ``out`` was not made by this.
    StorageError
        ``data`` or ``out`` cannot be written.
    """
    if rounds < 1:
        raise InputError(f"{rounds} rounds were asked for; it must be at least 1")
    earlier = _earlier(Path(out))
    done = 0 if earlier is None else _rounds(earlier)  # The given bundle's own do not count.
    current = earlier or bundle
    current.require_generator()
    command = _command(bundle, plan, data, out, rounds, epochs)
    learning: Future[Bundle] | None = None
    with ThreadPoolExecutor(1) as threads:
        for number in range(done + 1, rounds + 1):
            tell = partial(_tell, on_progress, number, rounds)
            dataset = collect_plan(
                _written(plan, number),
                data,
                bundle=current,
                config=config,
                fleet=fleet,
                on_progress=lambda p, tell=tell: tell("measuring", p.done, p.total),  # type: ignore[misc]
            )
            if learning is not None:
                current = learning.result()
            learn = partial(_learn, current, dataset, Path(out), number, epochs, plan.seed, command)
            learning = threads.submit(learn, partial(tell, "learning"))
            if fleet is None:
                current = learning.result()
                learning = None
        return current if learning is None else learning.result()


def _written(plan: CollectionPlan, number: int) -> CollectionPlan:
    """Change a plan to what a dataset holds after so many rounds."""
    count = number * plan.programs_per_task
    mix = Mix(evolved=0, mutated=0, generated=1)
    return plan.model_copy(update={"mix": mix, "programs_per_task": count})


def _tell(
    on_progress: Callable[[RefineProgress], None] | None,
    number: int,
    rounds: int,
    what: str,
    done: int,
    total: int,
) -> None:
    if on_progress is not None:
        on_progress(RefineProgress(number, rounds, what, done, total))


def _command(
    bundle: Bundle,
    plan: CollectionPlan,
    data: str | Path,
    out: str | Path,
    rounds: int,
    epochs: int,
) -> str:
    command = ["costlib", "refine", *plan.sources, "--pretrained", bundle.name]
    command += ["--data", str(data), "--out", str(out), "--rounds", str(rounds)]
    command += ["--programs", str(plan.programs_per_task), "--epochs", str(epochs)]
    return shlex.join([*command, "--seed", str(plan.seed)])


def _earlier(out: Path) -> Bundle | None:
    if not holds_bundle(out):
        check_place(out)
        return None
    check_writable(out)
    found = Bundle.load(out)
    if not _rounds(found):
        raise BundleError(f"{out} holds a bundle that was not refined here; choose another folder")
    return found


def _rounds(bundle: Bundle) -> int:
    return int(bundle.manifest.metrics.get(_ROUNDS, 0))


def _learn(
    bundle: Bundle,
    dataset: Dataset,
    out: Path,
    number: int,
    epochs: int,
    seed: int,
    command: str,
    tell: Callable[[int, int], None],
) -> Bundle:
    """Train a bundle's generator on a dataset; returns the bundle with the new one."""
    generator = bundle.require_generator()
    checkpoints = out.with_name(f".{out.name}-round-{number}")
    learnt = fit_generator(
        dataset,
        config=generator.config.model_copy(update={"epochs": epochs}),
        start=generator,
        seed=seed,
        checkpoints=checkpoints,
        on_progress=tell,
    )
    manifest = bundle.manifest
    refined = save_bundle(
        out,
        bundle.model,
        draft=bundle.draft,
        directions=bundle.directions,
        priors=bundle.priors,
        generator=learnt,
        command=command,
        seed=manifest.seed,
        hardware=manifest.hardware,
        trained_on=manifest.trained_on,
        metrics=manifest.metrics | {_ROUNDS: number},
        replace=True,
    )
    shutil.rmtree(checkpoints, ignore_errors=True)
    return refined
