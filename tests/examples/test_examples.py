"""The examples of tools/examples, run as they are, with fewer trials."""

from __future__ import annotations

import functools
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Client, Listener
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import matplotlib as mpl
import nbformat
import numpy as np
import pytest
from forked import Popen
from jupyter_client import launcher
from nbclient import NotebookClient

from costlib.tvm_compat import ms, relax, tvm

EXAMPLES = Path(__file__).parents[2] / "tools" / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


def test_stock_metaschedule_with_a_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    small = functools.partial(ms.search_strategy.EvolutionarySearch, population_size=16)
    monkeypatch.setattr(ms.search_strategy, "EvolutionarySearch", small)
    assert 0 < example("metaschedule_script.py")["main"](trials=4) < 1


def test_a_relax_module_tuned_and_deployed(tmp_path: Path) -> None:
    names = example("relax_module.py")
    network, (x,) = names["module"]()
    output = names["main"](trials=4, out=tmp_path)
    untuned = relax.VirtualMachine(tvm.compile(network, target="llvm"), tvm.cpu())
    expected = untuned["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(output, expected, rtol=1e-3, atol=1e-5)


def test_a_new_family(tmp_path: Path) -> None:
    main = example("new_family.py")["main"]
    names = main.__globals__
    names["Mixer"] = functools.partial(names["Mixer"], blocks=1, width=16)
    result = main(trials=4, programs=2, out=tmp_path)
    (network,) = result.networks
    assert network.max_abs_error < 1e-3
    assert network.latency_after_s > 0


COSTLIB = """#!{python} -IS
import sys
from multiprocessing.connection import Client
with Client({address!r}) as connection:
    connection.send(sys.argv[1:])
    code, output = connection.recv()
sys.stdout.write(output)
sys.exit(code)
"""


def answer(calls: Listener) -> None:
    """Fork a process for each call of ``costlib``, until one without arguments."""
    while True:
        with calls.accept() as call:
            arguments = call.recv()
            if not arguments:
                return
            command = [sys.executable, "-m", "costlib", *arguments]
            with Popen(command, stdout=PIPE, stderr=STDOUT, text=True) as process:
                output, _ = process.communicate()
            call.send((process.returncode, output))


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Path]:
    """A folder with a ``costlib`` that starts in no time."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "costlib"
    with Listener(family="AF_UNIX") as calls, ThreadPoolExecutor(1) as thread:
        command.write_text(COSTLIB.format(python=sys.executable, address=calls.address))
        command.chmod(0o755)
        answered = thread.submit(answer, calls)
        yield folder
        with Client(calls.address) as last:
            last.send([])
        answered.result()


def test_a_new_hardware_key_from_collecting_to_publishing(
    tmp_path: Path, network_file: Callable[[str], str], commands: Path
) -> None:
    sources = [network_file("matmul 64 64 64"), network_file("dense 32 64 64")]
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"sources = {json.dumps(sources)}\n"
        "programs_per_task = 4\nmin_flops = 0\n[mix]\nevolved = 0\n"
        f"[held_out]\nnetworks = ['{network_file('matmul 48 96 32')}']\nprograms_per_task = 2\n"
    )
    done = subprocess.run(
        ["sh", EXAMPLES / "new_hardware.sh", tmp_path / "mine", "5", tmp_path / "published"],
        env=os.environ
        | {
            "PLAN": str(plan),
            "TRIALS": "2",
            "NETWORK": sources[0],
            "PATH": f"{commands}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "published" / "bundle.json").is_file()
    assert (tmp_path / "mine" / "run" / "network.so").is_file()
    assert (tmp_path / "mine" / "run.html").read_text().startswith("<!")


QUICK = """
from quick import learn_quickly

learn_quickly(setattr)
"""
SMALLER = {
    '"bert_tiny"': '"matmul 64 64 64"',
    "TRIALS = 64": "TRIALS = 4",
    "PROGRAMS = 32": "PROGRAMS = 3",
    "TASKS = 24": "TASKS = 3",
    "PROGRAMS = 16": "PROGRAMS = 4",
}


def test_the_notebooks_of_the_three_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Jupyter, one after the other in one kernel, which is forked."""
    monkeypatch.setattr(launcher, "Popen", Popen)
    cells = [nbformat.v4.new_code_cell(QUICK)]
    for name in ("tune_a_network", "collect_a_dataset", "train_a_bundle"):
        cells += nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4).cells
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
        for large, small in SMALLER.items():
            cell.source = cell.source.replace(large, small)
    notebook = nbformat.v4.new_notebook(cells=cells)
    where = {"metadata": {"path": str(EXAMPLES)}}
    NotebookClient(notebook, resources=where, timeout=600, kernel_name="python3").execute()
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    shown = [output.data.get("text/html", "") for output in outputs if "data" in output]
    assert sum("<iframe sandbox" in html for html in shown) == 6


def test_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("agg")
    monkeypatch.chdir(EXAMPLES)
    cells = json.loads((EXAMPLES / "dataset_and_bundle.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for text in code:
        exec(text.replace("TASKS = 24", "TASKS = 3"), names)
    plt = names["plt"]
    assert len(plt.get_fignums()) == 2
    plt.close("all")
    assert names["metrics"].networks
