"""How one of a set of valid files is damaged: a little, at random."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, -1e308, 2**63, 2**70, "", "\x00", "a" * 5000, "../../etc/passwd",
    "/etc/passwd", [], {}, [[]], [None], {"": {}}, float("nan"), float("inf"), "1", "é\n", 0.5,
)  # fmt: skip

_TELLING = b'0123456789-.eE,[]{}"=\n'


def damage(folder: Path, rng: np.random.Generator) -> None:
    """Change one file of a folder."""
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
