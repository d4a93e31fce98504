from __future__ import annotations

import os

import pytest

from costlib.tvm_compat.quiet import stderr_silenced


def test_only_what_is_printed_meanwhile_is_lost(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(2, b"before ")
    with pytest.raises(ValueError, match="kept"), stderr_silenced():
        os.write(2, b"lost ")
        raise ValueError("kept")
    os.write(2, b"after")
    assert capfd.readouterr().err == "before after"
