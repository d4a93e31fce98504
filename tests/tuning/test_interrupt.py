"""Ctrl-C, and what is taken for it, while a run is at work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from costlib.errors import UnsupportedModelError
from costlib.tuning.interrupt import SIGNALS, STOPPING, Interruptible, ended_like_ctrl_c
from costlib.tvm_compat import tvm


@pytest.fixture(autouse=True)
def hanging_up_is_not_ignored() -> Iterator[None]:
    """As it is where the tests are started by ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("first", SIGNALS)
def test_the_first_is_a_wish_the_second_an_order(first: signal.Signals) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    said: list[str] = []
    with Interruptible(said.append) as interruptible:
        assert not interruptible.asked()
        os.kill(os.getpid(), first)
        assert interruptible.asked()
        assert said == [STOPPING], "it is acknowledged at once"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_closed_terminal_tells_twice_and_is_written_to_no_more() -> None:
    code = """
import os, pty, signal, sys
from costlib.tuning.interrupt import Interruptible
ours, theirs = pty.openpty()
os.dup2(theirs, 2)
with Interruptible(lambda line: print(line, file=sys.stderr, flush=True)) as interruptible:
    os.close(theirs)
    os.close(ours)
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGHUP)
    print("written to nowhere", file=sys.stderr, flush=True)
    print(interruptible.asked())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    )
    assert done.stdout == "True\n"


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_like_ctrl_c(), Interruptible() as interruptible:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interruptible.asked()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_anything_ends_like_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt), ended_like_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_error_that_tvm_makes_of_it_is_an_interruption() -> None:
    def interrupted(_mod: Any, _context: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)

    transform = tvm.transform.module_pass(interrupted, opt_level=0)
    with pytest.raises(KeyboardInterrupt), ended_like_ctrl_c():
        try:
            transform(tvm.IRModule({}))
        except Exception as error:
            raise UnsupportedModelError("TVM cannot lower it") from error
    with pytest.raises(UnsupportedModelError), ended_like_ctrl_c():
        raise UnsupportedModelError("this time nobody interrupted")
