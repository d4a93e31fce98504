from __future__ import annotations

import errno
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.data import parts
from costlib.data.parts import list_parts
from costlib.errors import DatasetError, StorageError

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("seconds", pa.float64()),
        pa.field("times", pa.list_(pa.float64()), nullable=False),
    ]
)
ROW = {"name": "a", "seconds": 1.5, "times": [1.0]}


def table(*rows: dict[str, object]) -> pa.Table:
    return parts.table_from_rows(rows or (ROW,), SCHEMA)


def everything(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text(st.characters(exclude_categories=["Cs"])),
            "times": st.lists(st.floats(allow_nan=False), max_size=4),
        },
        optional={"seconds": st.none() | st.floats(allow_nan=False)},
    ),
    max_size=20,
)


@settings(deadline=None)
@given(rows=ROWS)
def test_rows_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    part = parts.write_part(
        tmp_path_factory.mktemp("parts"), parts.table_from_rows(rows, SCHEMA), SCHEMA
    )
    expected = [{"seconds": None, **row} for row in rows]
    assert pl.read_parquet(part).select("seconds", "name", "times").to_dicts() == [
        {name: row[name] for name in ("seconds", "name", "times")} for row in expected
    ]


def test_parts_sort_by_time_of_writing(tmp_path: Path) -> None:
    written = [parts.write_part(tmp_path / "new", table(), SCHEMA) for _ in range(20)]
    assert written == sorted(set(written))
    assert sorted((tmp_path / "new").glob(parts.PART_PATTERN)) == written


def test_columns_may_come_in_any_order_and_similar_types(tmp_path: Path) -> None:
    other = pa.table({"times": [[1]], "seconds": [2], "name": ["a"]})
    part = parts.write_part(tmp_path, other, SCHEMA)
    assert parts.part_fault(part, SCHEMA) is None
    assert pl.read_parquet(part).to_dicts() == [{"name": "a", "seconds": 2.0, "times": [1.0]}]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({**ROW, "nmae": "a"}, "no such column: nmae"),
        ({"name": "a"}, "column 'times' may not be null"),
        ({**ROW, "name": None}, "column 'name' may not be null"),
        ({**ROW, "seconds": "fast"}, "column 'seconds' takes double"),
        ({**ROW, "name": "\ud800"}, "column 'name' takes string"),
        ({**ROW, "times": 3}, "column 'times' takes list"),
    ],
)
def test_rows_that_do_not_fit_are_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        table(ROW, bad)


@pytest.mark.parametrize(
    "bad",
    [
        pa.table({"name": ["a"], "seconds": [1.0]}),
        pa.table({"name": ["a"], "seconds": [1.0], "times": [[1.0]], "more": [1]}),
        pa.table({"name": ["a"], "seconds": ["fast"], "times": [[1.0]]}),
        pa.table({"name": pa.nulls(1, pa.string()), "seconds": [1.0], "times": [[1.0]]}),
    ],
)
def test_tables_that_do_not_fit_leave_nothing(tmp_path: Path, bad: pa.Table) -> None:
    with pytest.raises(DatasetError):
        parts.write_part(tmp_path, bad, SCHEMA)
    assert everything(tmp_path) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["fsync", "replace", "mkdir"])
def test_a_failing_write_is_one_line_and_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, call: str
) -> None:
    parts.write_part(tmp_path, table(), SCHEMA)
    before = everything(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    owner = os if call == "fsync" else Path
    with monkeypatch.context() as patch:
        patch.setattr(owner, call, fail)
        with pytest.raises(StorageError) as caught:
            parts.write_part(tmp_path / "sub", table(), SCHEMA, tmp_path / "scratch")
    assert str(tmp_path / "sub") in str(caught.value)
    assert os.strerror(code).lower() in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything(tmp_path) == before


def test_a_full_disk(small_disk: Path) -> None:
    part = parts.write_part(small_disk / "t", table(), SCHEMA)
    before = everything(small_disk)
    with pytest.raises(StorageError, match=r"no space left.*free some space"):
        parts.write_file(small_disk / "t" / "big", os.urandom(200_000), small_disk / "scratch")
    with pytest.raises(StorageError, match="no space left"):
        parts.write_file(part, os.urandom(200_000))
    assert everything(small_disk) == before
    assert pl.read_parquet(part).height == 1


def test_part_fault(tmp_path: Path) -> None:
    part = parts.write_part(tmp_path, table(), SCHEMA)
    assert parts.part_fault(part, SCHEMA) is None
    assert parts.part_fault(part, SCHEMA.append(pa.field("later", pa.int64()))) is None
    other = SCHEMA.set(1, pa.field("seconds", pa.string()))
    assert parts.part_fault(part, other) == "has a column 'seconds' of Float64 instead of String"
    whole = part.read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        part.write_bytes(whole[:length])
        with pytest.raises(DatasetError, match=r"part-.*is damaged.*costlib dataset verify"):
            parts.check_part(part, SCHEMA)


def test_a_column_whose_name_is_no_text(tmp_path: Path) -> None:
    part = parts.write_part(tmp_path, table(), SCHEMA)
    part.write_bytes(part.read_bytes().replace(b"seconds", b"\x84econds"))
    assert "is damaged ('utf-8' codec" in (parts.part_fault(part, SCHEMA) or "")


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    """Which ends polars."""
    names = pa.array([b"\xff\xfe"]).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"name": names}), tmp_path / "part-0.parquet")
    with pytest.raises(ValueError, match="UTF8"):
        parts.read_table(tmp_path / "part-0.parquet")
    sound = pa.table({"name": ["a"], "seconds": [1.0]})
    pq.write_table(sound, tmp_path / "part-1.parquet")
    assert parts.read_table(tmp_path / "part-1.parquet", ["name"]).to_pylist() == [{"name": "a"}]


def test_metadata_that_are_no_text(tmp_path: Path) -> None:
    """Which end polars, too."""
    odd = table().replace_schema_metadata({b"\xff": b"\xff"})
    pq.write_table(odd, tmp_path / "part-0.parquet")
    assert pl.DataFrame(parts.read_table(tmp_path / "part-0.parquet")).rows() == [("a", 1.5, [1.0])]
    assert parts.part_fault(tmp_path / "part-0.parquet", SCHEMA.with_metadata({})) is None


@pytest.mark.parametrize("names", ["{", '"part-0.parquet"', "[0]"])
def test_a_compacted_part_that_does_not_say_what_it_replaces(tmp_path: Path, names: str) -> None:
    sound = parts.write_part(tmp_path, table(), SCHEMA)
    odd = tmp_path / f"part-9{parts.COMPACTED}"
    pq.write_table(table().replace_schema_metadata({parts.REPLACES: names}), odd)
    assert list_parts(tmp_path) == [sound, odd]
