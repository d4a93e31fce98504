from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from forked import Popen

from costlib.collecting.claims import claimed

CLAIM_AND_WAIT = """
import sys
from pathlib import Path
from costlib.collecting.claims import claimed
with claimed(Path(sys.argv[1]), "task") as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


def test_a_claim_holds_until_its_process_dies(tmp_path: Path) -> None:
    other = Popen(
        [sys.executable, "-c", CLAIM_AND_WAIT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"True\n"
    with claimed(tmp_path, "task") as ours:
        assert not ours
    with claimed(tmp_path, "another", "task") as ours:
        assert ours
    other.kill()
    other.communicate()
    with claimed(tmp_path, "task") as ours:
        assert ours
