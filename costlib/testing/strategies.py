"""What every search strategy must do, on a simulated device.

::

    class TestHillClimbing(StrategySuite):
        config = HillClimbingConfig()
"""

from __future__ import annotations

import functools
from typing import ClassVar

from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.search.run_model import RunModel
from costlib.search.strategy import Strategy, StrategyConfig
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.workloads import Task, extract_tasks

_ROUNDS = 3
_BATCH = 4


class StrategySuite:
    """Tests of a strategy, with a bundle and without.

    Attributes
    ----------
    config
        Starts the strategy; a small population makes the tests quick.
    bundle
        What a search with a bundle is given; without one, it is searched from scratch alone.
    """

    config: ClassVar[StrategyConfig]
    bundle: ClassVar[Bundle | None] = None

    def _start(self, task: Task, seed: int = 0, bundle: Bundle | None = None) -> Strategy:
        return self.config.start(task, Hardware.local(), RunModel(bundle), seed)

    def _searched(self, seed: int = 0, bundle: Bundle | None = None) -> tuple[Strategy, list[str]]:
        """Search for some rounds; return the search, and the programs in order."""
        search, device = self._start(_matmul(), seed, bundle), SimulatedDevice(analytic)
        for _ in range(_ROUNDS):
            proposals = search.propose(_BATCH)
            assert len(proposals) == _BATCH
            measured = device.measure(search.task, [p.candidate for p in proposals])
            search.observe(proposals, measured)
        return search, [m.program.program_id for m in device.measured]

    def test_proposes_valid_programs_once(self) -> None:
        """No program is proposed twice, and each one runs."""
        for bundle in [None] if self.bundle is None else [self.bundle, None]:
            search, measured = self._searched(bundle=bundle)
            assert len(set(measured)) == len(measured) == _ROUNDS * _BATCH
            assert search.history.measured == set(measured)
            assert len(search.elite) == _ROUNDS * _BATCH
            assert search.best_s == min(latency_s for latency_s, _ in search.elite)

    def test_the_seed_decides(self) -> None:
        """The same seed proposes the same, another one something else."""
        _, first = self._searched(0, self.bundle)
        _, again = self._searched(0, self.bundle)
        _, other = self._searched(1, self.bundle)
        assert first == again != other

    def test_goes_on_from_what_was_measured(self) -> None:
        """Programs that somebody else measured are known, and are not proposed."""
        task = _matmul()
        proposals = self._start(task).propose(_BATCH)
        recalled = self._start(task)
        recalled.recall(SimulatedDevice(analytic).measure(task, [p.candidate for p in proposals]))
        known = {p.candidate.program.program_id for p in proposals}
        assert recalled.history.measured == known
        assert not known & {p.candidate.program.program_id for p in recalled.propose(_BATCH)}

    def test_replaying_is_as_good_as_having_been_there(self) -> None:
        """A search that is taken through the batches of another one goes on like it."""
        search, again = self._start(_matmul()), self._start(_matmul())
        device = SimulatedDevice(analytic)
        for _ in range(_ROUNDS):
            refused = set(search.refused)
            proposals = search.propose(_BATCH)
            measured = device.measure(search.task, [p.candidate for p in proposals])
            again.refused.update(search.refused - refused)
            pairs = [(p.candidate.program, p.origin) for p in proposals]
            replayed = [p for p in again.replayed(pairs) if p is not None]
            for one, known in ((search, proposals), (again, replayed)):
                one.begin(known)
                one.observe(known, measured)
        following = [
            [p.candidate.program.program_id for p in one.propose(_BATCH)] for one in (search, again)
        ]
        assert following[0] == following[1]

    def test_a_small_space_comes_to_an_end(self) -> None:
        """A space that holds few programs is searched to its end, and no further."""
        task = extract_tasks("transpose 8 8", Hardware.local())[0]
        search, device = self._start(task), SimulatedDevice(analytic)
        for _ in range(100):
            proposals = search.propose(8)
            search.observe(proposals, device.measure(task, [p.candidate for p in proposals]))
            if search.exhausted:
                break
        assert search.exhausted
        assert len({m.program.program_id for m in device.measured}) == len(device.measured)


@functools.cache
def _matmul() -> Task:
    return extract_tasks("matmul 64 64 64", Hardware.local())[0]
