"""Import of records that other people measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError
from costlib.logs.importers import ALREADY_THERE, ImportReport, import_logs, writer
from costlib.logs.importers.steps import fill_steps
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
        "no workload file beside it": 1,
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


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A line of a log with one value replaced, cut off, or random bytes."""
    kind = draw(st.sampled_from(("bytes", "cut", "value")))
    if kind == "bytes":
        return draw(st.binary(max_size=60))
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
