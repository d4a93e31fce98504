"""Ctrl-C while a run is at work."""

from __future__ import annotations

import os
import signal

import pytest

from costlib.tuning.interrupt import Interruptible


def test_the_first_ctrl_c_is_a_wish_the_second_an_order() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruptible() as interruptible:
        assert not interruptible.asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert interruptible.asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
