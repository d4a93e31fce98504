"""What an adaptation keeps from call to call: the minutes spent, the tasks, and the models so far.

It lies beside the bundle that is being made. Losing it loses no measurement: these are in a
dataset of their own.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import ValidationError

from costlib.errors import InputError
from costlib.files import first_line, storage_errors, write_json
from costlib.frozen import FrozenStrict
from costlib.hub.bundle import Bundle
from costlib.models import model_class
from costlib.models.base import CostModel

_STATE = "adaptation.json"
_MODEL, _DRAFT = "model", "draft"


class Point(FrozenStrict):
    """A moment in which the models were taught what was measured until then.

    Attributes
    ----------
    mark
        After how many minutes that was due.
    minutes
        After how many it was.
    programs, tasks
        How many had been measured to learn from.
    """

    mark: float
    minutes: float
    programs: int
    tasks: int


class Adaptation(FrozenStrict):
    """The state of an adaptation.

    Attributes
    ----------
    bundle, hardware, seed
        What it started from, for which hardware, and with which seed.
    spent_s
        Seconds spent by all calls.
    chunks
        Workload ids of the tasks, chunk by chunk; the first of each is kept apart.
    finished
        How many chunks were measured to their end.
    points
        When the models were taught.
    """

    bundle: str
    hardware: str
    seed: int
    spent_s: float = 0.0
    chunks: tuple[tuple[str, ...], ...] = ()
    finished: int = 0
    points: tuple[Point, ...] = ()


class Ledger:
    """The file of an adaptation's state, and its models.

    Parameters
    ----------
    folder
        Where they lie; made if missing.
    start
        The bundle that it starts from.
    hardware_id, seed
        What an earlier call must have been told, too.

    Attributes
    ----------
    state
        As it is now.

    Raises
    ------
    InputError
        An earlier call was about something else, or the file is damaged.
    """

    def __init__(self, folder: Path, start: Bundle, hardware_id: str, seed: int) -> None:
        self._folder = folder
        self._began = monotonic()
        settings = {"bundle": start.fingerprint, "hardware": hardware_id, "seed": seed}
        self.state = self._read() or Adaptation.model_validate(settings)
        self._before_s = self.state.spent_s
        for name, value in settings.items():
            earlier = getattr(self.state, name)
            if earlier != value:
                raise InputError(
                    f"{folder} holds an adaptation with the {name} {earlier}, not {value}; "
                    "say the same again, or choose another folder"
                )

    @property
    def spent_s(self) -> float:
        """Seconds spent by all calls until now."""
        return self._before_s + monotonic() - self._began

    @property
    def apart(self) -> frozenset[str]:
        """The workload ids of the tasks that are kept apart."""
        return frozenset(chunk[0] for chunk in self.state.chunks)

    def note(self, **changes: Any) -> None:
        """Write the state down, with changes and the time spent."""
        self.state = self.state.model_copy(update=changes | {"spent_s": self.spent_s})
        write_json(self._folder / _STATE, self.state.model_dump(mode="json"))

    def note_point(self, point: Point, bundle: Bundle) -> None:
        """Note that the models were taught, and keep them."""
        for part, model in ((_MODEL, bundle.model), (_DRAFT, bundle.draft)):
            if model is not None:
                folder = self._place(len(self.state.points), part)
                with storage_errors(folder):
                    folder.mkdir(parents=True, exist_ok=True)
                    model.save(folder)
        self.note(points=(*self.state.points, point))

    def models(self, number: int, like: Bundle) -> tuple[CostModel, CostModel | None]:
        """Return the cost model and the model of schedules of a point, of the kinds of a bundle."""
        model = type(like.model).load(self._place(number, _MODEL))
        kind = like.manifest.draft_kind
        if kind is None:
            return model, None
        return model, model_class(kind).load(self._place(number, _DRAFT))

    def _place(self, number: int, part: str) -> Path:
        return self._folder / f"point-{number}" / part

    def _read(self) -> Adaptation | None:
        file = self._folder / _STATE
        try:
            return Adaptation.model_validate_json(file.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise InputError(
                f"{file} cannot be read ({first_line(error)}); remove {self._folder} to begin "
                "anew, what was measured stays"
            ) from None
