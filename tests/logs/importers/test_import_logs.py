"""Import of records that other people measured."""

from __future__ import annotations

import gzip
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.data.verify import verify
from costlib.errors import DatasetError, InputError
from costlib.logs.importers import ALREADY_THERE, ImportReport, import_logs, writer
from costlib.logs.importers.ansor import read_ansor
from costlib.logs.importers.record import SkippedRecordError
from costlib.logs.importers.steps import fill_steps
from costlib.logs.importers.targets import parse_target
from costlib.space.program import Sketch

FIXTURES = Path(__file__).parent.parent / "fixtures"
ANSOR = FIXTURES / "ansor_v0.6.log"

AUTOTVM: dict[str, Any] = {
    "input": [
        "llvm -keys=cpu -mcpu=core-avx2 -link-params=0",
        "dense_pack.x86",
        [["TENSOR", [1, 512], "float32"], ["TENSOR", [1000, 512], "float32"], None, "float32"],
        {},
    ],
    "config": {
        "index": 7,
        "code_hash": None,
        "entity": [["tile_y", "sp", [-1, 1, 1]], ["unroll", "ot", True], ["ann", "an", ["none"]]],
    },
    "result": [[2e-5, 4e-5], 0, 0.5, 1676344759.5],
    "version": 0.2,
}


def rows(out: Path) -> pl.DataFrame:
    return Dataset.open(out).scan().collect()


def only(report: ImportReport) -> dict[str, int]:
    return report.files[0].skipped


def test_ansor(tmp_path: Path) -> None:
    report = import_logs([ANSOR], tmp_path / "ds")
    assert (report.records, report.imported, report.failed_measurements) == (6, 6, 1)
    found = rows(tmp_path / "ds")
    assert set(found["origin"]) == {"imported"}
    assert set(found["status"]) == {"ok", "build_timeout"}
    failed = found.filter(pl.col("status") != "ok")
    assert failed["latency_s"].to_list() == [None]
    assert failed["run_secs"].to_list() == [[]]
    assert found["latency_s"].max() < 1
    assert found["measured_at"].dt.year().unique().to_list() == [2024]
    workloads = Dataset.open(tmp_path / "ds").scan("workloads").collect()
    assert any(name.startswith("conv2d_layer(128, 128, 28, 28") for name in workloads["name"])
    assert workloads["mod_json"].null_count() == len(workloads) == 2
    (hardware,) = Dataset.open(tmp_path / "ds").hardware().values()
    assert (hardware.kind, hardware.target["arch"]) == ("cuda", "sm_80")


def test_ansor_steps_come_back(tmp_path: Path) -> None:
    import_logs([ANSOR], tmp_path / "ds")
    sketches = dict(
        Dataset.open(tmp_path / "ds")
        .scan("sketches")
        .select("sketch_id", "instructions")
        .collect()
        .iter_rows()
    )
    logged = [json.loads(line)["i"][1][1] for line in ANSOR.read_text().splitlines()]
    stored = [
        fill_steps(Sketch.from_json(sketches[sketch_id]), json.loads(decisions))
        for sketch_id, decisions in rows(tmp_path / "ds")
        .select("sketch_id", "decisions")
        .iter_rows()
    ]
    assert stored == logged


def test_old_ansor_logs_with_comments_and_cores(tmp_path: Path) -> None:
    report = import_logs([FIXTURES / "ansor_v0.2_v0.3.json"], tmp_path / "ds")
    assert (report.records, report.imported, report.skipped) == (2, 2, {})
    cpu = [h for h in Dataset.open(tmp_path / "ds").hardware().values() if h.kind == "cpu"]
    assert [(h.num_cores, h.vector_bits) for h in cpu] == [(18, 512)]


def test_autotvm(tmp_path: Path) -> None:
    log = tmp_path / "log"
    failed = {**AUTOTVM, "result": [[1e9], 4, 1.0, 1676344760.0]}
    old = {
        "i": [*AUTOTVM["input"], ["dense", 1], {"i": 7, "e": AUTOTVM["config"]["entity"]}],
        "r": [[3e-5], 0, 1.0, 1500000000],
        "v": 0.1,
    }
    log.write_text("\n".join(map(json.dumps, (AUTOTVM, failed, old))))
    report = import_logs([log], tmp_path / "ds")
    assert (report.imported, report.failed_measurements, report.skipped) == (3, 1, {})
    found = rows(tmp_path / "ds")
    assert found["status"].to_list() == ["ok", "run_error", "ok"]
    assert found["latency_s"].to_list() == pytest.approx([3e-5, None, 3e-5])
    assert found["program_id"].n_unique() == 1
    assert json.loads(found["decisions"][0]) == [[0, [-1, 1, 1]], [1, True], [2, ["none"]]]
    workload = Dataset.open(tmp_path / "ds").scan("workloads").collect().row(0, named=True)
    assert workload["arguments"][1] == {"dtype": "float32", "shape": [1000, 512]}
    (hardware,) = Dataset.open(tmp_path / "ds").hardware().values()
    assert "link-params" not in hardware.target
    assert "core-avx2" in hardware.hardware_id


def test_again_adds_nothing_and_a_kill_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.write_text(ANSOR.read_text() + ANSOR.read_text().splitlines()[0])
    import_logs([log], tmp_path / "whole")
    whole = sorted(rows(tmp_path / "whole")["program_id"])
    assert len(whole) == 7  # What the log holds twice is there twice.
    monkeypatch.setattr(writer, "_BATCH", 2)
    killed = writer.ImportWriter.flush
    flushes = iter(range(100))

    def flush_twice(self: writer.ImportWriter) -> None:
        if next(flushes) == 2:
            raise KeyboardInterrupt
        killed(self)

    with monkeypatch.context() as patch:
        patch.setattr(writer.ImportWriter, "flush", flush_twice)
        with pytest.raises(KeyboardInterrupt):
            import_logs([log], tmp_path / "ds")
    assert len(rows(tmp_path / "ds")) == 4
    report = import_logs([log], tmp_path / "ds")
    assert (report.imported, report.skipped) == (3, {ALREADY_THERE: 4})
    assert sorted(rows(tmp_path / "ds")["program_id"]) == whole
    assert import_logs([log], tmp_path / "ds").imported == 0


def test_two_imports_at_once_add_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both know the dataset without the records before either adds one."""
    monkeypatch.setattr(writer, "_BATCH", 4)
    import_logs([FIXTURES / "ansor_v0.2_v0.3.json"], tmp_path / "ds")
    together = Barrier(2)
    flush = writer.ImportWriter.flush

    def flush_together(self: writer.ImportWriter) -> None:
        together.wait(60)
        flush(self)

    monkeypatch.setattr(writer.ImportWriter, "flush", flush_together)
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(import_logs, [ANSOR], tmp_path / "ds") for _ in range(2)]
        reports = [one.result() for one in both]
    assert sum(report.imported for report in reports) == 6
    assert sum(report.failed_measurements for report in reports) == 1
    assert sum(report.skipped.get(ALREADY_THERE, 0) for report in reports) == 6
    assert len(rows(tmp_path / "ds")) == 2 + 6
    assert verify(Dataset.open(tmp_path / "ds")) == []


def test_what_another_import_or_a_compaction_did_meanwhile_is_seen(tmp_path: Path) -> None:
    waiting = writer.ImportWriter(tmp_path / "ds")
    tally = waiting.begin_log()
    made = datetime.now(UTC)
    records = [read_ansor(json.loads(line), made) for line in ANSOR.read_text().splitlines()]
    for record in records[:3]:
        waiting.add(record)
    waiting.flush()
    assert import_logs([ANSOR], tmp_path / "ds").imported == 3
    compact(Dataset.open(tmp_path / "ds"))
    for record in records[3:]:
        waiting.add(record)
    waiting.flush()
    assert tally == writer.LogTally(imported=3, repeated=3, failed=1)
    assert len(rows(tmp_path / "ds")) == 6


def test_many_small_logs_are_looked_up_and_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ANSOR.read_text().splitlines()
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(200):
        value = json.loads(lines[number % 2])
        value["r"][0] = [1e-3 + 1e-6 * number]
        (logs / f"{number:03}.json").write_text(json.dumps(value))
    (logs / "copy.json").write_text((logs / "007.json").read_text())
    scans: list[str] = []
    scan = Dataset.scan

    def counted(self: Dataset, table: str = "measurements") -> pl.LazyFrame:
        scans.append(table)
        return scan(self, table)

    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "scan", counted)
        report = import_logs([logs], tmp_path / "ds")
    assert (report.imported, report.skipped) == (200, {ALREADY_THERE: 1})
    assert {file.imported for file in report.files[:-1]} == {1}
    dataset = Dataset.open(tmp_path / "ds")
    assert sorted(scans) == ["measurements", "sketches", "workloads"]
    assert len(dataset.part_files("measurements")) == len(dataset.hardware())
    again = import_logs([logs], tmp_path / "ds")
    assert (again.imported, again.skipped) == (0, {ALREADY_THERE: 201})


def test_layouts_and_encodings_of_logs(tmp_path: Path) -> None:
    lines = ANSOR.read_text().splitlines()
    values = list(map(json.loads, lines))
    (tmp_path / "logs").mkdir()
    for name, data in {
        "lines.JSON.GZ": gzip.compress(ANSOR.read_bytes()),
        "array.json": json.dumps(values, indent=2).encode(),
        "pretty.json": "\n".join(json.dumps(v, indent=1) for v in values).encode("utf-16"),
        "commas.JSON": ",\n".join([*lines, ""]).encode("utf-8-sig"),
    }.items():
        (tmp_path / "logs" / name).write_bytes(data)
    report = import_logs([tmp_path / "logs"], tmp_path / "ds")
    assert [file.records for file in report.files] == [6, 6, 6, 6]
    assert (report.imported, report.skipped) == (6, {ALREADY_THERE: 18})
    (tmp_path / "half.gz").write_bytes(gzip.compress(ANSOR.read_bytes())[:-9])
    half = import_logs([tmp_path / "half.gz"], tmp_path / "half")
    assert half.skipped == {"the compressed file is damaged, or cut off": 1}
    assert half.imported == 6


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("llvm", {}),
        (
            "llvm -mcpu=skylake-avx512 -num-cores 4",
            {"mcpu": "skylake-avx512", "num-cores": 4},
        ),
        (
            "llvm -mcpu=skylake-avx512 -num-cores=4 -keys=cpu",
            {"mcpu": "skylake-avx512", "num-cores": 4, "keys": ["cpu"]},
        ),
        (
            " llvm  -keys cpu,arm_cpu --mattr=+neon,-sve -model='Kryo 585'  -fast-math -runtime=c",
            {
                "keys": ["cpu", "arm_cpu"],
                "mattr": ["+neon", "-sve"],
                "model": "Kryo 585",
                "fast-math": True,
            },
        ),
        ("llvm -system-lib -opt-level -1 -mcpu=", {"opt-level": -1, "mcpu": ""}),
    ],
)
def test_targets_in_a_line(line: str, target: dict[str, Any]) -> None:
    assert parse_target(line) == {"kind": "llvm", **target}
    assert parse_target(json.dumps({"kind": "llvm", **target})) == {"kind": "llvm", **target}


@pytest.mark.parametrize("line", ["", "4", "no target!", "llvm 4", "llvm -mcpu 'x", "llvm -a b c"])
def test_lines_that_are_no_target(line: str) -> None:
    with pytest.raises(SkippedRecordError, match="malformed"):
        parse_target(line)


def test_targets_with_spaces_in_logs(tmp_path: Path) -> None:
    line = "llvm -mcpu=skylake-avx512 -num-cores 4"
    cpu = {**AUTOTVM, "input": [line, *AUTOTVM["input"][1:]]}
    record = json.loads(ANSOR.read_text().splitlines()[0])
    record["i"][0] = [record["i"][0][0], line]
    (tmp_path / "log").write_text(json.dumps(cpu) + json.dumps(record))
    assert import_logs([tmp_path / "log"], tmp_path / "ds").imported == 2
    (hardware,) = Dataset.open(tmp_path / "ds").hardware().values()
    assert (hardware.kind, hardware.num_cores) == ("cpu", 4)
    assert hardware.target == {"kind": "llvm", "mcpu": "skylake-avx512", "num-cores": 4}


def test_what_cannot_be_read_is_reported_and_the_rest_imported(tmp_path: Path) -> None:
    lines = ANSOR.read_text().splitlines()
    first = json.loads(lines[0])
    odd = [
        lines[0],
        lines[1][: len(lines[1]) // 2],
        "# a comment",
        "",
        json.dumps({"some": "thing"}),
        json.dumps({**first, "v": "v9.9"}),
        json.dumps({**first, "r": [[1e-3], 99, 1, 1]}),
        json.dumps({**first, "r": [[-1.0], 0, 1, 1]}),
        json.dumps({**first, "i": [1, 2]}),
        json.dumps(AUTOTVM),
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        json.dumps([0, [[[], []], [1.0], {"kind": "llvm"}, []]]),
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "mixed").write_text("\n".join(odd))
    (tmp_path / "logs" / "empty").touch()
    (tmp_path / "logs" / "junk").write_bytes(bytes(range(256)) * 50)
    report = import_logs([tmp_path / "logs"], tmp_path / "ds")
    files = {Path(file.file).name: file for file in report.files}
    assert files["empty"].skipped == {"the file is empty": 1}
    assert files["junk"].skipped == {"not a tuning log": 1}
    mixed = files["mixed"]
    assert mixed.formats == ["ansor", "autotvm", "metaschedule"]
    assert (mixed.records, mixed.imported) == (10, 2)
    assert mixed.skipped == {
        "not JSON, or cut off": 2,
        "JSON, but no tuning record": 1,
        "an unknown version of Ansor's log": 1,
        "the error number is unknown": 1,
        "a cost is not positive": 1,
        "the record is malformed": 1,
        "no workload file beside it (--workloads gives one)": 1,
    }


def test_nothing_is_made_where_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("hello")
    assert import_logs([tmp_path / "log"], tmp_path / "ds").imported == 0
    assert not (tmp_path / "ds").exists()
    with pytest.raises(InputError, match="no-such"):
        import_logs([tmp_path / "no-such"], tmp_path / "ds")
    with pytest.raises(DatasetError, match="choose a folder"):
        import_logs([ANSOR], tmp_path / "log")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


ANOTHER_FORMAT = re.compile(
    rb"SQLite format 3|\x1f\x8b|BZh|\xfd7zXZ|PK\x03\x04|7z\xbc\xaf|\x28\xb5\x2f\xfd"
)
"""How a file begins that is no text at all, whatever follows."""


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A line of a log with one value replaced, cut off, or random bytes."""
    kind = draw(st.sampled_from(("bytes", "cut", "value")))
    if kind == "bytes":
        return draw(st.binary(max_size=60).filter(lambda line: not ANOTHER_FORMAT.match(line)))
    entry = draw(st.sampled_from((json.loads(ANSOR.read_text().splitlines()[3]), AUTOTVM)))
    if kind == "cut":
        line = json.dumps(entry).encode()
        return line[: draw(st.integers(0, len(line)))]
    entry = json.loads(json.dumps(entry))
    place: Any = entry
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, (list, dict)) or not inner or draw(st.integers(0, 2)) == 0:
            place[key] = draw(JSON)
            return json.dumps(entry).encode()
        place = inner


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(damaged(), max_size=4))
def test_damaged_lines_never_stop_an_import(
    lines: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    good = ANSOR.read_text().splitlines()[0].encode()
    (folder / "log").write_bytes(b"\n".join([*lines, good]) + b"\n")
    report = import_logs([folder / "log"], folder / "ds")
    assert report.imported >= 1
    assert report.records == report.imported + sum(report.skipped.values())
    assert len(rows(folder / "ds")) == report.imported
