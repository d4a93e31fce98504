"""costlib's search as a drop-in for MetaSchedule: ``search_strategy=`` and ``task_scheduler=``.

For people who keep their own tuning script::

    strategy = SearchStrategy(costlib.load_pretrained())
    contexts = [ms.TuneContext(mod, target, search_strategy=strategy.clone(), ...) for ...]
    ms.tune_tasks(tasks=contexts, ..., task_scheduler=GradientScheduler())
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurement import Measurement
from costlib.schema import Status
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import Prior, Proposal, Strategy
from costlib.search.tasks.scheduler import Objective, TaskScheduler
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
        self._model = model or RunModel(bundle, self._config.models, seed)
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


@derived_object
class GradientScheduler(ms.task_scheduler.PyTaskScheduler):  # type: ignore[misc]
    """Ansor's task scheduler with its objectives, see :class:`TaskScheduler`.

    Parameters
    ----------
    objective
        ``"sum"`` or ``"early-stop"``: what can be said of the tasks of one network.
    """

    def __init__(self, objective: Objective = "sum") -> None:
        super().__init__()
        self._objective = objective
        self._scheduler: TaskScheduler | None = None
        self._best_s: dict[int, float] = {}
        self._running: int | None = None

    def next_task_id(self) -> int:
        """Choose the next task; -1 if all are done."""
        outer = self._outer()
        records = list(outer.tasks_)
        if self._scheduler is None:
            weights = np.array([[float(record.task_weight) for record in records]])
            flops = [float(record.flop) for record in records]
            self._scheduler = TaskScheduler(weights, self._objective, flops=flops)
        if self._running is not None:
            self._note(self._running, outer.join_running_task(self._running))
        open_tasks = [i for i, record in enumerate(outer.tasks_) if not record.is_terminated]
        choice = self._scheduler.choose(open_tasks)
        self._running = None if choice is None else choice.task
        return -1 if choice is None else choice.task

    def _note(self, task: int, results: Any) -> None:
        """Note the best latency of a task after a batch; an empty one says nothing."""
        found = [_seconds(result) for result in results or []]
        best = min([s for s in found if s is not None], default=None)
        if best is not None:
            self._best_s[task] = min(best, self._best_s.get(task, best))
        if found and self._scheduler is not None:
            self._scheduler.observe(task, self._best_s.get(task))


def _measurement(proposal: Proposal, result: Any) -> Measurement:
    latency_s = _seconds(result)
    status = Status.RUN_ERROR if latency_s is None else Status.OK
    return Measurement(proposal.candidate.program, status, latency_s=latency_s)


def _seconds(result: Any) -> float | None:
    """Return the latency of a runner's result, ``None`` if it failed."""
    if result.run_secs is None or result.error_msg is not None:
        return None
    return float(np.mean([float(s) for s in result.run_secs]))
