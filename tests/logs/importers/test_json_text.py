"""Values in files that are laid out, encoded, compressed and damaged in many ways."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.logs.importers import json_text
from costlib.logs.importers.json_text import read_values
from costlib.logs.importers.record import SkippedRecordError

dumps = partial(json.dumps, ensure_ascii=False)
LAYOUTS: dict[str, Callable[[list[Any]], str]] = {
    "lines": lambda values: "".join(dumps(value) + "\n" for value in values),
    "windows": lambda values: "\r\n".join(map(dumps, values)),
    "pretty": lambda values: "\n".join(dumps(value, indent=2) for value in values),
    "array": dumps,
    "pretty array": lambda values: dumps(values, indent=4),
    "array of lines": lambda values: "[" + ",\n ".join(map(dumps, values)) + ",]",
    "concatenated": lambda values: "".join(map(dumps, values)),
    "trailing commas": lambda values: "".join(dumps(value) + ",\n" for value in values),
    "commented": lambda values: "# log\n" + "\n# next\n".join(map(dumps, values)),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
RECORDS: list[Any] = [
    {
        "i": [['["f", 1]', "llvm", [8]], [[], [["SP", 2, 0, 512]]]],
        "r": [[1.5e-3], 0, 2, 1],
        "v": "v0.6",
    },
    [0, [[[["GetSBlock", [], ["größe {", "main"], ["b0"]]], [[3, [4, 8]]]], [0.25], "llvm", []]],
    ["-123", "AAAA"],
]


def read(data: bytes) -> list[Any]:
    values = read_values(io.BufferedReader(io.BytesIO(data)))
    return [value.reason if isinstance(value, SkippedRecordError) else value for value in values]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_layouts_and_encodings(layout: str, encoding: str) -> None:
    assert read(LAYOUTS[layout](RECORDS).encode(encoding)) == RECORDS


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_compressions(compression: str) -> None:
    text = LAYOUTS["pretty"](1000 * RECORDS).encode("utf-16")
    packed = COMPRESSIONS[compression](text)
    assert read(packed) == 1000 * RECORDS
    *found, last = read(packed[: len(packed) // 2])
    values = [value for value in found if value != json_text.NOT_JSON]
    assert values == (1000 * RECORDS)[: len(values)]
    assert len(found) - len(values) <= 1
    assert compression == "none" or last == "the compressed file is damaged, or cut off"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.dictionaries(st.text(max_size=3), VALUES), min_size=1),
    st.sampled_from(sorted(LAYOUTS)),
    st.integers(1, 40),
)
def test_where_a_piece_ends_does_not_matter(values: list[Any], layout: str, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_PIECE", piece)
        assert read(LAYOUTS[layout](values).encode()) == values


@pytest.mark.parametrize("layout", ("lines", "pretty", "pretty array", "array of lines"))
def test_one_damaged_value_costs_no_other(layout: str) -> None:
    text = LAYOUTS[layout](3 * RECORDS)
    for cut in ('"GetSBlock"', "0.25", "3,"):
        start = text.index(cut)
        assert read((text[:start] + "?" + text[start:]).encode()) == [
            RECORDS[0],
            json_text.NOT_JSON,
            *RECORDS[2:],
            *(2 * RECORDS),
        ]


def test_a_value_that_is_cut_off() -> None:
    first, second, third = map(dumps, RECORDS)
    for end in range(2, len(second)):
        lines = "\n".join((first, second[:end], third))
        assert read(lines.encode()) == [RECORDS[0], json_text.NOT_JSON, RECORDS[2]]


def test_text_that_is_none() -> None:
    good = dumps(RECORDS[0])
    for damaged in (b'["\xff"]', b'["\\ud800"]', b'{"\\udc00": 1}'):
        log = b"\n".join((good.encode(), damaged, good.encode()))
        assert read(log) == [RECORDS[0], json_text.NOT_JSON, RECORDS[0]]
    assert read(good.encode("utf-16") + b"\0") == [RECORDS[0], json_text.NOT_JSON]
    assert read(b'["\\ud83d\\ude00"]') == [["\U0001f600"]]


@pytest.mark.parametrize("damage", (b"\0", 100 * b"\0", b"\xff\xfe\n", b"{\0\n", b"\0[\n"))
def test_damage_at_the_beginning_is_no_other_encoding(damage: bytes) -> None:
    assert read(damage + LAYOUTS["lines"](RECORDS).encode())[-3:] == RECORDS


def test_values_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MAX_VALUE", 10**6)
    good = dumps(RECORDS[0]).encode()
    for opening, filling in ((b'{"', b"a"), (b"[", b"1,"), (b"[", b"\n 1,")):
        bomb = gzip.compress(opening + 10**7 * filling + b"\n" + good)
        assert read(bomb) == ["a value of over 64 MiB", RECORDS[0]]
    deep = 10**5 * b"[" + b"\n" + good
    assert read(deep)[-1] == RECORDS[0]


def test_what_must_be_unpacked_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(LAYOUTS["lines"](RECORDS))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.write(log)
    with tarfile.open(tmp_path / "tar", "w:gz") as archive:
        archive.add(log)
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        database.execute("CREATE TABLE workload (shash, mod)")
    assert read((tmp_path / "zip").read_bytes()) == ["a zip archive; unpack it first"]
    assert read((tmp_path / "tar").read_bytes()) == ["a tar archive; unpack it first"]
    packed = gzip.compress((tmp_path / "db").read_bytes())
    assert read(packed) == ["a compressed SQLite file; unpack it first"]
