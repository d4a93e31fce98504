from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from costlib.canary_times import CanaryTimes
from costlib.measure.correction import DEAD_BAND, corrected_latency, slow_down

REFERENCE = CanaryTimes(compute_s=1e-3, memory_s=2e-3)
SECONDS = st.floats(1e-6, 1.0)


@given(SECONDS)
def test_the_reference_state_changes_nothing(secs: float) -> None:
    found = corrected_latency([secs], [REFERENCE.compute_s], [REFERENCE.memory_s], REFERENCE)
    assert found == secs


@given(SECONDS, st.floats(1.0, 4.0))
def test_a_slow_state_is_taken_out(secs: float, factor: float) -> None:
    now = (REFERENCE.compute_s * factor, REFERENCE.memory_s)
    found = corrected_latency([secs * factor], [now[0]], [now[1]], REFERENCE)
    assert secs <= found * (1 + 1e-9)
    assert found <= secs * (1 + DEAD_BAND) * (1 + 1e-9)


@given(st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_state_is_never_faster_than_the_reference(compute: float, memory: float) -> None:
    now = CanaryTimes(compute_s=REFERENCE.compute_s * compute, memory_s=REFERENCE.memory_s * memory)
    assert slow_down(now, REFERENCE) == 1


def test_the_best_repeat_counts() -> None:
    found = corrected_latency([3.0, 1.0, 2.0], [1e-3] * 3, [2e-3] * 3, REFERENCE)
    assert found == 1.0
