"""What the bench on a surrogate searches, and for what."""

from __future__ import annotations

import pytest

from costlib.data.dataset import Dataset
from costlib.errors import UnknownNameError
from costlib.hub import Bundle
from tools.benchmarks.surrogate import HARDWARE, cases_of, settings_of
from tools.evidence.files import ZOO
from tools.evidence.protocol import setting
from tools.evidence.simulated import NETWORKS, PROOF, SCREEN
from tools.evidence.simulated_summary import RACED_AS
from tools.evidence.stores import SEARCH


def test_the_proof_repeats_races(bundle: Bundle) -> None:
    versions = settings_of(PROOF, [], bundle)
    raced = {name for r in SEARCH.load() if r.kind == RACED_AS[PROOF] for name in r.sides}
    assert len(versions) >= 8
    assert versions.keys() <= raced
    assert not any(setting(config, "ahead") for _, config in versions.values())


def test_what_is_compared_with_comes_first(bundle: Bundle) -> None:
    assert list(settings_of(PROOF, ["cold", "plain"], bundle)) == ["full", "cold", "plain"]
    screened = settings_of(SCREEN, ["cold,draft=0", "niches=0"], bundle)
    assert list(screened) == ["cold", "present", "cold,draft=0", "niches=0"]
    assert [known is None for known, _ in screened.values()] == [True, False, True, False]
    assert setting(screened["niches=0"][1], "niches") == 0


def test_a_setting_that_was_not_raced_is_refused(bundle: Bundle) -> None:
    with pytest.raises(UnknownNameError, match="did you mean plain \\+ draft"):
        settings_of(PROOF, ["plain + drafts"], bundle)


def test_raced_tasks_are_held_out_ones() -> None:
    zoo = Dataset.open(ZOO)
    held_out = zoo.held_out()
    assert held_out is not None
    hardware = zoo.hardware()[HARDWARE]
    ids = set(held_out.scan("workloads").select("workload_id").collect()["workload_id"])
    raced = {r.what: r.tasks[0].workload_id for r in SEARCH.load() if r.kind == RACED_AS[PROOF]}
    cases = list(cases_of(PROOF, zoo, held_out, hardware))
    assert {case.what: case.tasks[0].workload_id for case in cases} == raced
    networks = list(cases_of(NETWORKS, zoo, held_out, hardware))
    assert len(networks) == 2
    screened = next(cases_of(SCREEN, zoo, held_out, hardware))
    assert screened.tasks[0].workload_id not in ids
    assert {task.workload_id for case in networks for task in case.tasks} <= ids
