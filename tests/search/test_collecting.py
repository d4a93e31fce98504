from __future__ import annotations

import pytest

from costlib.data.proposals import Known
from costlib.errors import UnknownNameError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.simulated import analytic
from costlib.search.collecting import BundleSearch, load_search
from costlib.workloads import Task, extract_tasks


@pytest.fixture(scope="module")
def conv(hardware: Hardware) -> Task:
    return extract_tasks("conv2d 1 16 14 14 32 3 pad=1", hardware)[0]


def test_a_search_goes_on_from_what_is_known(
    bundle: Bundle, hardware: Hardware, conv: Task
) -> None:
    search = BundleSearch(bundle, hardware)
    known: list[Known] = []
    best_s = []
    for _ in range(4):
        found = search(conv, known, 8, seed=0)
        again = search(conv, known, 8, seed=0)
        assert len(found) == 8
        assert [one.program for one in found] == [one.program for one in again]
        ids = {one.program.program_id for one in found}
        assert len(ids) == 8
        assert not ids & {one.program.program_id for one in known}
        known += [Known(one.program, analytic(conv, one.program)) for one in found]
        best_s.append(min(one.latency_s for one in known if one.latency_s is not None))
    assert best_s[-1] < best_s[0]


def test_what_failed_is_not_proposed_again(bundle: Bundle, hardware: Hardware, conv: Task) -> None:
    search = load_search(str(bundle.path), hardware)
    failed = [Known(one.program, None) for one in search(conv, [], 8, seed=0)]
    others = search(conv, failed, 8, seed=0)
    assert len(others) == 8
    ids = {one.program.program_id for one in failed}
    assert not ids & {one.program.program_id for one in others}


def test_an_unknown_bundle_is_refused(hardware: Hardware) -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        load_search("nowhere", hardware)
