"""Throw damaged files at everything that reads files: no crash, no hang, nothing but clear errors.

    python tools/fuzz.py --work /tmp/fuzz                 # 100,000 inputs for each loader
    python tools/fuzz.py --work /tmp/fuzz --only bundle --inputs 1000

Writes ``tools/results/fuzz.json`` and goes on where it was stopped; one process for each loader may
work at once. An input is a small valid set of files with one of them changed: bytes replaced, cut
out, put in, the end cut off; in JSON, also that of PyTorch's programs, a value exchanged for one
that hurts; in parquet a column. It is read in another process with limits on time and memory. What
is read without complaint is fine, and so is one of costlib's errors of one line; everything else is
a finding.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from fuzz_loaders import LOADERS, Load

from costlib.errors import CostlibError

RESULT = Path(__file__).parent / "results" / "fuzz.json"
INPUTS = 100_000
AT_ONCE = 4000
SECS_EACH = 20
MEMORY_BYTES = 12 << 30
MOST_KEPT = 20

NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, -1e308, 2**63, 2**70, "", "\x00", "a" * 5000, "../../etc/passwd",
    "/etc/passwd", [], {}, [[]], [None], {"": {}}, float("nan"), float("inf"), "1", "é\n", 0.5,
)  # fmt: skip


_TELLING = b'0123456789-.eE,[]{}"=\n'


@dataclass
class Findings:
    """What became of the inputs of one loader."""

    inputs: int
    outcomes: Counter[str]
    findings: list[str]


def main() -> None:
    """Go through the loaders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--only", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _child(arguments.only[0], arguments.work, *arguments.child)
        return
    end = time.monotonic() + 60 * arguments.minutes
    for name in arguments.only:
        seeds = arguments.work / "seeds" / name
        if not seeds.exists():
            from fuzz_seeds import seed_files  # With it comes all that trains.

            seed_files(name, seeds)
        untouched = arguments.work / f"try-{name}"
        _fresh(seeds, untouched)
        LOADERS[name](untouched)
        known = _known().get(name, {"inputs": 0, "outcomes": {}, "findings": []})
        state = Findings(known["inputs"], Counter(known["outcomes"]), known["findings"])
        while state.inputs < arguments.inputs and time.monotonic() < end:
            stop = min(state.inputs + AT_ONCE, arguments.inputs)
            _some(name, arguments.work, state, stop)
            found = {
                "inputs": state.inputs,
                "outcomes": dict(sorted(state.outcomes.items())),
                "findings": state.findings[:MOST_KEPT],
            }
            RESULT.write_text(json.dumps(_known() | {name: found}, indent=1) + "\n")
        print(name, state.inputs, dict(state.outcomes), state.findings[:3], flush=True)


def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    return known


def _some(name: str, work: Path, state: Findings, stop: int) -> None:
    """Let a child go through inputs up to ``stop``; note where it dies and go on behind that."""
    while state.inputs < stop:
        command = [sys.executable, __file__, "--work", str(work), "--only", name]
        command += ["--child", str(state.inputs), str(stop)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert child.stdout is not None
        for line in child.stdout:
            state.inputs += 1
            outcome, _, detail = line.decode().strip().partition(" ")
            state.outcomes[outcome] += 1
            if detail:
                state.findings.append(f"input {state.inputs - 1}: {detail}")
        status = child.wait()
        if status:
            died = signal.Signals(-status).name if status < 0 else f"exit {status}"
            kind = "hang" if died == "SIGALRM" else "crash"
            state.outcomes[kind] += 1
            state.findings.append(f"input {state.inputs}: {kind} ({died})")
            shutil.copytree(
                work / f"try-{name}", work / f"{name}-{state.inputs}", dirs_exist_ok=True
            )
            state.inputs += 1


def _child(name: str, work: Path, start: int, stop: int) -> None:
    """Go through some inputs; a line on the standard output for each."""
    load, seeds, folder = LOADERS[name], work / "seeds" / name, work / f"try-{name}"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for number in range(start, stop):
        _fresh(seeds, folder)
        _change(folder, np.random.default_rng(number))
        signal.alarm(SECS_EACH)
        outcome = _read(load, folder)
        signal.alarm(0)
        os.write(lines, f"{outcome}\n".encode())


def _fresh(seeds: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seeds, folder)


def _read(load: Load, folder: Path) -> str:
    try:
        load(folder)
    except CostlibError as error:
        if "\n" in str(error).strip():
            return f"finding several lines: {error!r}".replace("\n", "\\n")[:300]
        return "refused"
    except BaseException as error:
        return f"finding {type(error).__name__}: {error}".replace("\n", " ")[:300]
    return "accepted"


def _change(folder: Path, rng: np.random.Generator) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    file = files[rng.integers(len(files))]
    ways = {
        ".json": _change_json,
        ".parquet": _change_column,
        ".safetensors": _change_header,
        ".pt2": _change_program,
    }
    way = ways.get(file.suffix)
    if way is None or rng.random() < 0.5 or not way(file, rng):
        _change_bytes(file, rng)


def _change_bytes(file: Path, rng: np.random.Generator) -> None:
    content = bytearray(file.read_bytes())
    ways = 2 if rng.random() < 0.5 else 6  # Half of the files keep their length.
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(len(content) + 1))
        match rng.integers(ways):
            case 0:
                content[place : place + 1] = rng.bytes(1)
            case 1:
                content[place : place + 1] = bytes([_TELLING[rng.integers(len(_TELLING))]])
            case 2:
                del content[place:]
            case 3:
                del content[place : place + int(rng.integers(1, 64))]
            case 4:
                content[place:place] = rng.bytes(int(rng.integers(1, 9)))
            case _:
                content[place:place] = content[place : place + int(rng.integers(1, 200))]
    file.write_bytes(content)


def _change_json(file: Path, rng: np.random.Generator) -> bool:
    lines = file.read_text().splitlines() if file.name.startswith("database") else None
    chosen = int(rng.integers(len(lines))) if lines else 0
    value = json.loads(lines[chosen] if lines else file.read_text())
    text = json.dumps(_with_nasty(value, rng))
    if lines:
        lines[chosen] = text
        text = "\n".join(lines) + "\n"
    file.write_text(text)
    return True


def _with_nasty(value: Any, rng: np.random.Generator) -> Any:
    """Exchange, remove or double one value somewhere inside."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    if isinstance(value, (dict, list)):
        walk(value)
    nasty = NASTY[rng.integers(len(NASTY))]
    if not places or rng.random() < 0.02:
        return nasty
    node, key = places[rng.integers(len(places))]
    if rng.random() < 0.2:
        del node[key]
    elif isinstance(node, list) and rng.random() < 0.2:
        node.append(node[key])
    else:
        node[key] = nasty
    return value


def _change_column(file: Path, rng: np.random.Generator) -> bool:
    table = pl.read_parquet(file)
    name = table.columns[rng.integers(len(table.columns))]
    nasty = NASTY[rng.integers(len(NASTY))]
    match rng.integers(4):
        case 0:
            table = table.drop(name)
        case 1:
            table = table.with_columns(pl.lit(None).alias(name))
        case 2 if isinstance(nasty, (str, float, bool)):
            table = table.with_columns(pl.lit(nasty).alias(name))
        case _:
            values = table[name].to_list()
            values[rng.integers(len(values))] = nasty
            try:
                table = table.with_columns(pl.Series(name, values, strict=False))
            except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
                return False
    try:
        table.write_parquet(file)
    except pl.exceptions.PolarsError:  # Parquet has no such column.
        return False
    return True


def _change_header(file: Path, rng: np.random.Generator) -> bool:
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.dumps(_with_nasty(json.loads(content[8 : 8 + length]), rng)).encode()
    file.write_bytes(struct.pack("<Q", len(header)) + header + content[8 + length :])
    return True


def _change_program(file: Path, rng: np.random.Generator) -> bool:
    with zipfile.ZipFile(file) as archive:
        content = {entry: archive.read(entry) for entry in archive.namelist()}
    (program,) = (entry for entry in content if entry.endswith("models/model.json"))
    content[program] = json.dumps(_with_nasty(json.loads(content[program]), rng)).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for entry, data in content.items():
            archive.writestr(entry, data)
    return True


if __name__ == "__main__":
    main()
