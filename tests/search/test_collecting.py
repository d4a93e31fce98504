from __future__ import annotations

from itertools import islice
from statistics import median

import pytest

from costlib.data.proposals import Known
from costlib.errors import UnknownNameError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.simulated import analytic
from costlib.search.collecting import BundleSearch, load_search
from costlib.space.design_space import DesignSpace
from costlib.workloads import Task, extract_tasks


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 64 96 128", hardware)[0]


def test_a_search_goes_on_from_what_is_known(
    bundle: Bundle, hardware: Hardware, task: Task
) -> None:
    search = BundleSearch(bundle, hardware)
    known: list[Known] = []
    middle_s = []
    for _ in range(4):
        found = search(task, known, 8, seed=0)
        again = search(task, known, 8, seed=0)
        assert len(found) == 8
        assert [one.program for one in found] == [one.program for one in again]
        ids = {one.program.program_id for one in found}
        assert len(ids) == 8
        assert not ids & {one.program.program_id for one in known}
        latencies_s = [analytic(task, one.program) for one in found]
        known += [Known(one.program, s) for one, s in zip(found, latencies_s, strict=True)]
        middle_s.append(median(s for s in latencies_s if s is not None))
    drawn = [analytic(task, program) for program, _ in islice(DesignSpace(task).sample(0), 64)]
    assert 2 * min(middle_s[1:]) < median(s for s in drawn if s is not None), "it learns"


def test_what_failed_is_not_proposed_again(bundle: Bundle, hardware: Hardware, task: Task) -> None:
    search = load_search(str(bundle.path), hardware)
    failed = [Known(one.program, None) for one in search(task, [], 8, seed=0)]
    others = search(task, failed, 8, seed=0)
    assert len(others) == 8
    ids = {one.program.program_id for one in failed}
    assert not ids & {one.program.program_id for one in others}


def test_an_unknown_bundle_is_refused(hardware: Hardware) -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        load_search("nowhere", hardware)
