"""costlib's search as a search strategy of MetaSchedule."""

from __future__ import annotations

from typing import Any

from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurement import Measurement
from costlib.metaschedule.results import latency_s
from costlib.schema import Status
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import Prior, Proposal, Strategy
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object
from costlib.workloads.task import Task


@derived_object
class SearchStrategy(ms.search_strategy.PySearchStrategy):  # type: ignore[misc]
    """Proposes programs by costlib's models, and corrects those by what is measured.

    Its clones, one for each task, share the models. MetaSchedule's own cost model is not asked:
    pass ``cost_model="none"``.

    Parameters
    ----------
    bundle
        The pretrained bundle; none for a cold start.
    hardware
        What is tuned for; this machine's CPU if not given.
    config, seed
        How to search.
    """

    def __init__(
        self,
        bundle: Bundle | None = None,
        hardware: Hardware | None = None,
        config: SearchConfig | None = None,
        seed: int = 0,
        model: RunModel | None = None,
    ) -> None:
        super().__init__()
        self._bundle = bundle
        self._hardware = hardware or Hardware.local()
        self._config = config or SearchConfig()
        self._seed = seed
        canary = bundle.canary(self._hardware.hardware_id) if bundle else None
        self._model = model or RunModel(bundle, self._config.models, seed, canary)
        self._search: Strategy | None = None
        self._proposals: list[Proposal] = []
        self._left = 0
        self._per_round = 0

    def _initialize_with_tune_context(self, context: Any) -> None:
        task = Task(str(context.task_name or "main"), context.mod, self._hardware.target)
        self._search = self._config.strategy.start(task, self._hardware, self._model, self._seed)

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: list[Any],
        database: Any = None,
        cost_model: Any = None,
    ) -> None:
        """Begin; the design space is derived once more, with its sketches' ids."""
        self._left = int(max_trials)
        self._per_round = int(num_trials_per_iter)

    def post_tuning(self) -> None:
        """End."""
        self._left = 0

    def generate_measure_candidates(self) -> list[Any] | None:
        """Propose a batch; ``None`` if the budget is spent or nothing is left."""
        assert self._search is not None, "the TuneContext initialises its strategy"
        count = min(self._per_round, self._left)
        self._proposals = self._search.propose(count, self._priors()) if count else []
        if not self._proposals:
            return None
        self._left -= len(self._proposals)
        schedules: list[Any] = [proposal.candidate.schedule for proposal in self._proposals]
        return [
            ms.MeasureCandidate(s, ms.arg_info.ArgInfo.from_entry_func(s.mod, remove_preproc=True))
            for s in schedules
        ]

    def notify_runner_results(self, measure_candidates: list[Any], results: list[Any]) -> None:
        """Learn from what was measured."""
        assert self._search is not None
        measurements = [
            _measurement(proposal, result)
            for proposal, result in zip(self._proposals, results, strict=True)
        ]
        self._search.observe(self._proposals, measurements)
        self._model.refit()

    def clone(self) -> Any:
        """Make a strategy for another task of the same run."""
        return SearchStrategy(self._bundle, self._hardware, self._config, self._seed, self._model)

    def _priors(self) -> list[Prior]:
        assert self._search is not None
        bank = self._bundle.priors if self._bundle and self._config.relatives.bank else None
        return [] if bank is None or self._search.elite else self._search.priors_in(bank)


def _measurement(proposal: Proposal, result: Any) -> Measurement:
    measured_s = latency_s(result)
    status = Status.RUN_ERROR if measured_s is None else Status.OK
    return Measurement(proposal.candidate.program, status, latency_s=measured_s)
