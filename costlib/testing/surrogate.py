"""A device that is not there, but answers as a real one probably would: screen ideas on it.

A :class:`Surrogate` is fitted to all that datasets hold of one hardware. Its devices answer any
program of the tasks that it knows at once, with the noise that measurements had. So a search runs
on one hundreds of times, and a setting that gains nothing there need not be raced for real.

What remains of bias:

- It is fitted to programs that somebody chose to measure. Of kinds of programs that nobody did, and
  of programs faster than all that were measured, it knows nothing; its trees do not extrapolate.
- Trees like those of a bundle see the same features, so what no feature shows is luck to both. A
  bundle is right more often than it would be in truth where it was trained on the same records: use
  tasks that it was not trained on, such as a dataset's held-out ones.
- What the trees leave unexplained is drawn anew for each program: among records, errors at programs
  that fall into the same leaves do not correlate. It also holds the noise of the records, so luck
  counts for more: programs drawn at random, and searches without a bundle, do better than they
  would in truth.
- No program fails to build or run, and a slow moment does not last.

Real races have the last word. ``docs/results/surrogate.md`` says how far they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from costlib.data.dataset import Dataset
from costlib.data.task_tables import stored_tasks
from costlib.errors import DatasetError, InputError
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.measure.building import Building
from costlib.measure.config import MeasureConfig
from costlib.measure.correction import corrected_latency, slow_down
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Status
from costlib.space.design_space import DesignSpace
from costlib.testing.landscape import Fit, Landscape
from costlib.testing.noise import Noise
from costlib.training.batches import Chosen, assemble, chosen_hardware, concatenate
from costlib.workloads.task import Task


class Surrogate:
    """What datasets hold of one hardware, as a source of devices; made by :meth:`fitted`.

    Attributes
    ----------
    hardware
        What it stands for.
    tasks
        What its devices can be asked for.
    fit
        How well it predicts programs that it has not seen.
    """

    def __init__(
        self, hardware: Hardware, tasks: Sequence[Task], landscape: Landscape, noise: Noise
    ) -> None:
        self.hardware = hardware
        self.tasks = tuple(tasks)
        self._landscape = landscape
        self._noise = noise

    @classmethod
    def fitted(
        cls,
        datasets: Sequence[Dataset],
        hardware_id: str,
        workload_ids: Collection[str],
        seed: int = 0,
        only: Chosen = None,
    ) -> Surrogate:
        """Fit one; this takes minutes, more where features of programs have to be computed.

        Parameters
        ----------
        datasets
            All that is to be learnt from; no task may be in two of them.
        hardware_id
            The hardware whose measurements count.
        workload_ids
            The tasks that it is to answer; those beside them teach it, too.
        seed
            Of the fit.
        only
            Ids of the workloads to learn from, some of each dataset; all by default.

        Raises
        ------
        UnknownNameError
            A dataset has no such hardware.
        DatasetError
            There are no measurements of one of the tasks on this hardware.
        """
        parts = [assemble(one, only=only, hardware=[hardware_id]) for one in datasets]
        data = concatenate(parts)
        if missing := set(workload_ids) - {task for task, _ in data.tasks}:
            raise DatasetError(
                f"{', '.join(str(one.path) for one in datasets)} hold no program of task "
                f"{min(missing)} that ran on {hardware_id}, so no surrogate can answer for it"
            )
        hardware = chosen_hardware(datasets[0], [hardware_id])[hardware_id]
        tasks = [t for one in datasets for t in stored_tasks(one, workload_ids, hardware)]
        landscape = Landscape(data, workload_ids, seed)
        return cls(hardware, tasks, landscape, Noise.recorded(datasets, hardware_id))

    @property
    def fit(self) -> Fit:
        """How well it predicts programs that it has not seen."""
        return self._landscape.fit

    def device(self, seed: int = 0) -> SurrogateDevice:
        """Make a device; another seed gives other errors to the programs, and other noise."""
        return SurrogateDevice(self.hardware, self._landscape, self._noise, seed)


class SurrogateDevice:
    """Measures like :class:`costlib.measure.measurer.Measurer`; see :class:`Surrogate`.

    Attributes
    ----------
    reference
        What the canaries take.
    truth_s
        Seconds that each program takes without noise, by ids, of those that were measured.
    """

    def __init__(
        self, hardware: Hardware, landscape: Landscape, noise: Noise, seed: int = 0
    ) -> None:
        self.reference = noise.reference
        self.truth_s: dict[str, float] = {}
        self._hardware = hardware
        self._landscape = landscape
        self._noise = noise
        self._seed = seed
        self._config = MeasureConfig()
        self._looks: dict[str, int] = {}
        self._described: dict[str, tuple[DesignSpace, TaskEncoder]] = {}
        self._builder = ThreadPoolExecutor(1)

    def measure(
        self, task: Task, candidates: Sequence[Candidate], best_s: float | None = None
    ) -> list[Measurement]:
        """Answer at once; see :meth:`begin`."""
        with self.begin(task, candidates) as building:
            return building.run(best_s)

    def begin(self, task: Task, candidates: Sequence[Candidate]) -> Building[None]:
        """Answer when the caller asks for it.

        Raises
        ------
        InputError
            The surrogate has no data of the task.
        """
        if task.workload_id not in self._landscape:
            raise InputError(
                f"the surrogate has no data of {task.title} on {self._hardware.hardware_id}; fit "
                "it to a dataset that holds measurements of this task"
            )

        def run(built: None, best_s: float | None) -> list[Measurement]:
            del built
            self._look_up(task, candidates)
            done = []
            for candidate in candidates:
                done.append(self._measured(candidate, best_s))
                latency_s = done[-1].latency_s
                if latency_s is not None and not done[-1].raced:
                    best_s = min(best_s or latency_s, latency_s)
            return done

        return Building(self._builder, lambda: None, run)

    def _look_up(self, task: Task, candidates: Sequence[Candidate]) -> None:
        """Find out what programs take that were not measured before."""
        fresh = {
            one.program.program_id: one.schedule
            for one in candidates
            if one.schedule is not None and one.program.program_id not in self.truth_s
        }
        if not fresh:
            return
        if task.workload_id not in self._described:
            space = DesignSpace(task)
            self._described[task.workload_id] = space, TaskEncoder.of_space(space, self._hardware)
        space, encoder = self._described[task.workload_id]
        batch = encoder.lowered(space.context, list(fresh.values()))
        chance = np.array([self._rng("error", name).random() for name in fresh])
        latency_s = self._landscape.latency_s(task.workload_id, batch, chance)
        self.truth_s.update(zip(fresh, latency_s.tolist(), strict=True))

    def _measured(self, candidate: Candidate, best_s: float | None) -> Measurement:
        program = candidate.program
        name = program.program_id
        if candidate.schedule is None:
            return Measurement(program, Status.INVALID, error="does not pass the postprocessors")
        self._looks[name] = self._looks.get(name, 0) + 1
        rng = self._rng("noise", name, self._looks[name])
        canary = self._noise.moment(rng)
        slow_s = self.truth_s[name] * slow_down(canary, self.reference)
        raced = candidate.race and best_s is not None and slow_s > self._config.race_factor * best_s
        repeats = 1 if raced else self._config.repeats
        run_secs = tuple((slow_s * self._noise.factors(repeats, rng)).tolist())
        compute, memory = (canary.compute_s,) * repeats, (canary.memory_s,) * repeats
        return Measurement(
            program,
            Status.OK,
            latency_s=corrected_latency(run_secs, compute, memory, self.reference),
            run_secs=run_secs,
            canary_compute=compute,
            canary_memory=memory,
            raced=raced,
            build_secs=0.0,
        )

    def _rng(self, *what: object) -> np.random.Generator:
        return np.random.default_rng(int(content_id(self._seed, *what)[:15], 16))
