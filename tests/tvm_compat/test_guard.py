from __future__ import annotations

import os
import signal

import pytest

from costlib.tvm_compat.guard import checked, survives


def crashes() -> None:
    os.write(2, b"a backtrace")
    os.kill(os.getpid(), signal.SIGSEGV)


def raises() -> None:
    raise ValueError("the reader says what is wrong")


def test_a_crash_is_noticed_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    assert survives(lambda: None)
    assert survives(raises)
    assert not survives(crashes)
    assert capfd.readouterr().err == ""


def test_items_after_a_crash_are_tested_too() -> None:
    def test(item: str) -> bool:
        if item == "crash":
            crashes()
        if item == "raise":
            raises()
        return item == "good"

    items = ["good", "bad", "crash", "good", "raise", "crash", "crash", "good"]
    assert checked(test, items) == [item == "good" for item in items]
    assert checked(test, []) == []
