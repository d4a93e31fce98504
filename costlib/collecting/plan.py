"""What a collection is to measure: networks, hardware, shares, limits; read from a TOML file.

::

    seed = 0
    model = "cpu-gbdt"          # searches for evolved programs, scores mutations
    sources = ["resnet_18", "mobilenet_v1@b4", "matmul 512 512 512"]
    programs_per_task = 40

    [mix]                       # shares of how programs are made; the rest is random
    evolved = 0.6
    mutated = 0.15

    [held_out]                  # measured into a dataset of their own, never trained on
    networks = ["bert_tiny"]
    programs_per_task = 100

    [[hardware]]                # the machine at hand, with different code; in this order
    [[hardware]]
    mcpu = "x86-64-v2"
    programs_per_task = 10

    [mutations]
    parents = 3000
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from costlib.errors import InputError
from costlib.frozen import FrozenStrict
from costlib.workloads.layout_choice import Layouts


class Mix(FrozenStrict):
    """How a task's programs are made.

    Attributes
    ----------
    evolved
        Share of programs that the search proposes after what was measured, as in a tuning run:
        what a model will have to rank.
    mutated
        Share of children that are measured beside their parent, one in every direction.
    generated
        Share of programs that the model's generator writes.
    uncertain
        Share of each batch that is drawn at random where the model's two views of a program, its
        schedule and its code, disagree most, and one of them thinks it good.
    """

    evolved: float = Field(0.0, ge=0, le=1)
    mutated: float = Field(0.5, ge=0, le=1)
    generated: float = Field(0.0, ge=0, le=1)
    uncertain: float = Field(0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _shares_fit(self) -> Mix:
        if self.evolved + self.mutated + self.generated + self.uncertain > 1:
            raise ValueError("the shares add up to more than 1")
        return self

    @property
    def takes_a_bundle(self) -> bool:
        """Whether some programs are made by a bundle's models."""
        return bool(self.evolved or self.generated or self.uncertain)


class HeldOutPlan(FrozenStrict):
    """Networks whose tasks are measured apart, and how many programs of each task.

    Training tasks that equal one of theirs, or nearly, are not measured at all.
    """

    networks: tuple[str, ...] = ()
    programs_per_task: int = Field(100, ge=1)


class HardwarePlan(FrozenStrict):
    """A way to compile for the machine at hand.

    Attributes
    ----------
    target
        As in ``costlib hardware --target``: ``"cpu"``, or ``"cuda"`` for the first GPU.
    mcpu, cores
        What code to generate and how many cores to use; the best and all by default.
    programs_per_task
        Instead of the plan's; 0 measures no training task.
    held_out
        Whether the held-out tasks are measured on it as well.
    """

    target: str = "cpu"
    mcpu: str | None = None
    cores: int | None = None
    programs_per_task: int | None = Field(None, ge=0)
    held_out: bool = False


class MutationPlan(FrozenStrict):
    """How many programs are changed in every direction, and scored, on the first hardware."""

    parents: int = Field(0, ge=0)


class CollectionPlan(FrozenStrict):
    """A whole collection.

    Attributes
    ----------
    sources
        Networks, operators and files, as for ``costlib tasks``.
    programs_per_task
        How many programs of each task the dataset should hold for each hardware.
    min_flops
        Tasks with less arithmetic, such as copies, are left out.
    minutes
        A call stops after the batch in which this is over; calling again goes on.
    layouts
        In which layouts networks are collected, see
        :func:`costlib.workloads.in_layouts.in_layouts`.
    model
        The bundle that searches for evolved programs, writes generated ones and scores mutations.
    seed
        Decides which programs are drawn.
    mix, held_out, hardware, mutations
        See their classes.
    """

    sources: tuple[str, ...] = Field(min_length=1)
    programs_per_task: int = Field(64, ge=1)
    min_flops: float = Field(1e4, ge=0)
    minutes: float | None = Field(None, gt=0)
    layouts: Layouts = "channels-last"
    model: str | None = None
    seed: int = 0
    mix: Mix = Mix()
    held_out: HeldOutPlan = HeldOutPlan()
    hardware: tuple[HardwarePlan, ...] = Field((HardwarePlan(held_out=True),), min_length=1)
    mutations: MutationPlan = MutationPlan()

    @model_validator(mode="after")
    def _has_the_model_it_needs(self) -> CollectionPlan:
        if self.model is None and self.takes_a_bundle:
            raise ValueError("evolved or generated programs and scored mutations need a 'model'")
        return self

    @property
    def takes_a_bundle(self) -> bool:
        """Whether programs are made or scored by a bundle's models."""
        return self.mix.takes_a_bundle or bool(self.mutations.parents)


def load_plan(path: str | Path) -> CollectionPlan:
    """Read a plan.

    Raises
    ------
    InputError
        There is no such file, it is no TOML, or a value is unknown or out of range.
    """
    path = Path(path)
    try:
        return CollectionPlan.model_validate(tomllib.loads(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "plan"
        raise InputError(f"{path}: {where}: {first['msg']}") from None
