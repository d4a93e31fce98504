"""Import of MetaSchedule databases: of this TVM, of older ones, of none at all."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi

from costlib.data.dataset import Dataset
from costlib.errors import InputError, UnknownNameError
from costlib.logs.export import RECORDS, WORKLOADS, export_metaschedule
from costlib.logs.importers import ALREADY_THERE, ImportReport, import_logs
from costlib.logs.importers.traces import translate_trace
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program, Sketch
from costlib.tvm_compat import ms, tvm
from costlib.workloads import Task

FIXTURES = Path(__file__).parent.parent / "fixtures"
FLOPS = {"metaschedule_tvm0.12": 0, "metaschedule_tvm0.23": 2 * 512**3}
OLD = tuple(FLOPS)
SECONDS = ([0.25, 0.5], [1e-7 / 3], [1e10])


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, matmul: Task, dense: Task) -> Path:
    """A database that stock TVM wrote: two tasks, three programs each, the last failed."""
    folder = tmp_path_factory.mktemp("tvm")
    written = ms.database.JSONDatabase(
        str(folder / WORKLOADS), str(folder / RECORDS), allow_missing=True
    )
    for task in (matmul, dense):
        workload = written.commit_workload(task.mod)
        samples = (pair for pair in DesignSpace(task).sample(3) if pair[1] is not None)
        for seconds, (_, schedule) in zip(SECONDS, islice(samples, 3), strict=True):
            arguments = ms.arg_info.ArgInfo.from_entry_func(schedule.mod, remove_preproc=True)
            written.commit_tuning_record(
                ms.database.TuningRecord(
                    schedule.trace, workload, seconds, task.tvm_target(), arguments
                )
            )
    return folder


def entries(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def in_order(values: list[Any]) -> list[str]:
    return sorted(json.dumps(value, sort_keys=True) for value in values)


def programs(dataset: Dataset) -> list[Any]:
    columns = ("hardware", "program_id", "run_secs", "status")
    return sorted(map(str, dataset.scan().select(columns).collect().iter_rows()))


def imported(out: Path, *logs: Path) -> Dataset:
    import_logs(logs, out)
    return Dataset.open(out)


def test_a_database_of_this_tvm_comes_back_exactly(database: Path, tmp_path: Path) -> None:
    dataset = imported(tmp_path / "ds", database)
    report = export_metaschedule(dataset, tmp_path / "out")
    assert (report.records, report.exported, report.skipped) == (6, 6, {})
    assert in_order(entries(tmp_path / "out" / RECORDS)) == in_order(entries(database / RECORDS))
    assert entries(tmp_path / "out" / WORKLOADS) == entries(database / WORKLOADS)
    opened = ms.database.JSONDatabase(
        str(tmp_path / "out" / WORKLOADS), str(tmp_path / "out" / RECORDS)
    )
    assert len(opened) == 6
    assert programs(imported(tmp_path / "again", tmp_path / "out")) == programs(dataset)


def test_its_programs_are_those_of_the_design_space(
    database: Path, tmp_path: Path, matmul: Task
) -> None:
    dataset = imported(tmp_path / "ds", database)
    assert dataset.scan().select("status").collect()["status"].to_list().count("run_error") == 2
    sketches = {sketch.sketch_id for sketch in DesignSpace(matmul).sketches}
    found = dataset.scan().collect().filter(workload_id=matmul.workload_id)
    assert len(found) == 3
    assert set(found["sketch_id"]) <= sketches


def test_a_collected_dataset_comes_back(measured_dataset: Dataset, tmp_path: Path) -> None:
    report = export_metaschedule(measured_dataset, tmp_path / "out")
    assert report.skipped == {}
    again = imported(tmp_path / "again", tmp_path / "out")
    columns = ("program_id", "run_secs")
    before, after = (d.scan().select(columns).collect() for d in (measured_dataset, again))
    assert set(map(str, before.iter_rows())) == set(map(str, after.iter_rows()))


def test_a_schedule_without_postprocessing_comes_back(tmp_path: Path, matmul: Task) -> None:
    schedule = tvm.s_tir.Schedule(matmul.mod)
    block = schedule.get_sblock("matmul")
    schedule.split(schedule.get_loops(block)[0], [None, 8])
    schedule.annotate(block, "note", {"a": 1})
    schedule.blockize(schedule.get_loops(block)[-1])
    (tmp_path / "db").mkdir()
    written = ms.database.JSONDatabase(
        str(tmp_path / "db" / WORKLOADS), str(tmp_path / "db" / RECORDS), allow_missing=True
    )
    arguments = ms.arg_info.ArgInfo.from_prim_func(matmul.mod["main"])
    workload = written.commit_workload(matmul.mod)
    written.commit_tuning_record(
        ms.database.TuningRecord(schedule.trace, workload, [0.1], matmul.tvm_target(), arguments)
    )
    dataset = imported(tmp_path / "ds", tmp_path / "db")
    export_metaschedule(dataset, tmp_path / "out")
    assert entries(tmp_path / "out" / RECORDS) == entries(tmp_path / "db" / RECORDS)
    row = dataset.scan().collect().row(0, named=True)
    text = dataset.scan("sketches").collect()["instructions"][0]
    program = Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"])
    lowered = DesignSpace(matmul).lower(program, Sketch.from_json(text))
    assert lowered is not None
    assert tvm_ffi.structural_equal(lowered.mod, schedule.mod)


@pytest.mark.parametrize("name", OLD)
def test_older_databases_are_translated_and_replayed(name: str, tmp_path: Path) -> None:
    dataset = imported(tmp_path / "ds", FIXTURES / name)
    (record,) = entries(FIXTURES / name / RECORDS)
    (workload,) = dataset.scan("workloads").collect().iter_rows(named=True)
    shapes = [[argument["dtype"], argument["shape"]] for argument in workload["arguments"]]
    assert shapes == [[dtype, shape] for _, dtype, shape in record[1][3]]
    assert workload["flops"] == FLOPS[name]
    (row,) = dataset.scan().collect().iter_rows(named=True)
    assert row["status"] == ("run_error" if record[1][1] == [1e10] else "ok")
    export_metaschedule(dataset, tmp_path / "out")
    (exported,) = entries(tmp_path / "out" / RECORDS)
    assert exported[1][1] == record[1][1]
    assert [i[0].replace("GetBlock", "GetSBlock") for i in record[1][0][0]] == [
        i[0] for i in exported[1][0][0]
    ]
    assert exported[1][0][1] == record[1][0][1]
    assert programs(imported(tmp_path / "again", tmp_path / "out")) == programs(dataset)


def test_instructions_get_the_arguments_they_lacked() -> None:
    old = [
        ["GetBlock", [], ["matmul", "main"], ["b0"]],
        ["Split", ["l1", "None", 8], [1], ["l2", "l3"]],
        ["ComputeAt", ["b0", "l2"], [1], []],
        ["CacheRead", ["b0"], [0, "shared"], ["b4"]],
    ]
    new = [
        ["GetSBlock", [], ["matmul", "main"], ["b0"]],
        ["Split", ["l1", "None", 8], [1, 0], ["l2", "l3"]],
        ["ComputeAt", ["b0", "l2"], [1, -1], []],
        ["CacheRead", ["b0", []], [0, "shared"], ["b4"]],
    ]
    assert translate_trace(old) == translate_trace(new) == new


@pytest.mark.parametrize("one_file", (True, False))
def test_sqlite(one_file: bool, database: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    workloads = logs / ("database" if one_file else "database_workload.sqlite")
    records = logs / ("database" if one_file else "database_tuning_record.sqlite")
    with closing(sqlite3.connect(workloads)) as file:
        file.execute("CREATE TABLE workload (shash, mod)")
        file.executemany("INSERT INTO workload VALUES (?, ?)", entries(database / WORKLOADS))
        file.commit()
    with closing(sqlite3.connect(records)) as file:
        file.execute(
            "CREATE TABLE tuning_record (workload_index, trace, run_secs, target, args_info)"
        )
        for index, parts in entries(database / RECORDS):
            columns = [json.dumps(part) for part in parts]
            columns[1] = "None" if parts[1] == [1e10] else columns[1]
            file.execute("INSERT INTO tuning_record VALUES (?, ?, ?, ?, ?)", [index, *columns])
        file.commit()
    dataset = imported(tmp_path / "ds", logs)
    assert programs(dataset) == programs(imported(tmp_path / "json", database))
    records.write_bytes(records.read_bytes()[:5000])
    report = import_logs([records], tmp_path / "damaged")
    assert "the SQLite file is damaged" in report.skipped


def only_reason(report: ImportReport) -> str:
    ((reason, count),) = report.skipped.items()
    assert count == 1
    return reason


def compressed(file: Path) -> None:
    file.with_name(f"{file.name}.GZ").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()


def test_names_in_upper_case_and_compressed(tmp_path: Path) -> None:
    logs = shutil.copytree(FIXTURES / OLD[0], tmp_path / "logs")
    shutil.copy(FIXTURES / OLD[1] / WORKLOADS, logs / "another_workload.json")
    for name in (RECORDS, WORKLOADS):
        (logs / name).rename(logs / name.upper())
    compressed(logs / RECORDS.upper())
    assert import_logs([logs], tmp_path / "ds").imported == 1
    compressed(logs / WORKLOADS.upper())
    assert import_logs([logs], tmp_path / "compressed").imported == 1
    shutil.copy(FIXTURES / OLD[0] / WORKLOADS, logs)
    report = import_logs([logs], tmp_path / "twice")
    assert "several have its name" in only_reason(report)


def test_workloads_in_a_file_of_another_name(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    records, workloads = tmp_path / "tuned.json", tmp_path / "elsewhere" / "modules"
    shutil.copy(FIXTURES / OLD[0] / RECORDS, records)
    shutil.copy(FIXTURES / OLD[0] / WORKLOADS, workloads)
    assert "no workload file" in only_reason(import_logs([records], tmp_path / "ds"))
    report = import_logs([records], tmp_path / "ds", workloads=workloads)
    assert (report.imported, report.skipped) == (1, {})
    assert programs(Dataset.open(tmp_path / "ds")) == programs(
        imported(tmp_path / "beside", FIXTURES / OLD[0])
    )
    others = FIXTURES / OLD[1] / WORKLOADS
    report = import_logs([records], tmp_path / "others", workloads=others)
    assert report.skipped == {"its arguments are not those of the given workload": 1}
    with pytest.raises(InputError, match="not of 2"):
        import_logs([records, FIXTURES / OLD[1] / RECORDS], tmp_path / "ds", workloads=workloads)
    with pytest.raises(InputError, match="holds no workloads"):
        import_logs([records], tmp_path / "ds", workloads=records)
    with pytest.raises(InputError, match="there is no file"):
        import_logs([records], tmp_path / "ds", workloads=tmp_path / "missing")


def test_given_workloads_of_programs_that_change_a_layout(database: Path, tmp_path: Path) -> None:
    logs = shutil.copytree(database, tmp_path / "logs")
    records = entries(logs / RECORDS)
    for _, (*_, arguments) in records:
        for argument in arguments:
            argument[2] = [1, *argument[2][::-1]]
    (logs / RECORDS).write_text("\n".join(map(json.dumps, records)))
    report = import_logs([logs / RECORDS], tmp_path / "ds", workloads=logs / WORKLOADS)
    assert (report.imported, report.skipped) == (6, {})


def test_sqlite_that_computes_what_it_holds(tmp_path: Path) -> None:
    """Half a gigabyte from a file of two pages."""
    with closing(sqlite3.connect(tmp_path / "bomb")) as file:
        file.execute("CREATE TABLE workload (shash, mod AS (zeroblob(500000000)))")
        file.execute("INSERT INTO workload VALUES ('0')")
        file.commit()
    report = import_logs([tmp_path / "bomb"], tmp_path / "ds")
    assert report.skipped == {"the SQLite file is damaged": 1}


def test_damaged_databases(database: Path, tmp_path: Path) -> None:
    first, second = entries(database / WORKLOADS)
    index, record = entries(database / RECORDS)[0]
    replaced = base64.b64encode(b"12345678" + b'{"root_index": 0, "nodes": [5]}').decode()
    logs = tmp_path / "logs"
    logs.mkdir()
    # The workload that both records share is there twice: the indices differ, the id does not.
    (logs / WORKLOADS).write_text(
        "\n".join(map(json.dumps, (first, ["0", "!"], ["0", replaced], first))) + '\n["0", "'
    )
    (instructions, decisions), *rest = record
    changed = [
        [index, record],
        [3, [record[0], [0.125], *record[2:]]],
        [1, record],
        [2, record],
        [4, record],
        [9, record],
        [-1, record],
        [0, [[instructions[1:], []], *rest]],
        [0, [[instructions, []], *rest]],
        [0, [[instructions, decisions], [0.1], "no target!"]],
        [0, "nothing"],
        [0, [[7, 8], [0.1], {"kind": "llvm"}]],
    ]
    (logs / RECORDS).write_text("\n".join(map(json.dumps, changed)))
    report = import_logs([logs], tmp_path / "ds")
    records = next(file for file in report.files if file.file.endswith(RECORDS))
    assert (records.records, records.imported) == (12, 2)
    assert records.skipped == {
        "its workload is damaged": 3,
        "its workload is not in the workload file": 2,
        "the trace does not apply to its workload": 1,
        "the trace leaves decisions open": 1,
        "the target is malformed": 1,
        "JSON, but no tuning record": 1,
        "the record is malformed": 1,
    }
    assert len(Dataset.open(tmp_path / "ds").scan("workloads").collect()) == 1
    assert import_logs([logs], tmp_path / "ds").skipped[ALREADY_THERE] == 2
    assert second != first


def test_records_that_crash_tvm(database: Path, tmp_path: Path) -> None:
    records = entries(database / RECORDS)
    instructions = records[1][1][0][0]
    place = next(i for i, one in enumerate(instructions) if one[0] == "GetSBlock")
    instructions[place][2][0] = None
    logs = shutil.copytree(database, tmp_path / "logs")
    (logs / RECORDS).write_text("".join(json.dumps(record) + "\n" for record in records))
    report = import_logs([logs], tmp_path / "ds")
    assert report.skipped == {"TVM crashes on it": 1}
    assert report.imported == 5


def test_records_that_tvm_hangs_on(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("costlib.logs.importers.child._MOST_SECS", 0.0)
    report = import_logs([database], tmp_path / "ds")
    assert report.skipped == {"TVM takes too long for it": 6}


def test_code_in_a_module_is_not_executed(tmp_path: Path) -> None:
    folder = FIXTURES / OLD[1]
    (shash, text), *_ = entries(folder / WORKLOADS)
    raw = base64.b64decode(text)
    evil = raw.replace(b'"dtype": "float32"', b'"dtype": "x(__import__(\'os\').abort())"')
    assert evil != raw
    (tmp_path / WORKLOADS).write_text(json.dumps([shash, base64.b64encode(evil).decode()]))
    (tmp_path / RECORDS).write_text((folder / RECORDS).read_text())
    report = import_logs([tmp_path], tmp_path / "ds")
    assert report.skipped == {"its workload cannot be translated": 1}


def test_wrong_exports(database: Path, tmp_path: Path) -> None:
    dataset = imported(tmp_path / "ds", database)
    with pytest.raises(InputError, match="choose another folder"):
        export_metaschedule(dataset, database)
    with pytest.raises(UnknownNameError, match="hardware"):
        export_metaschedule(dataset, tmp_path / "out", hardware_id="none")
    steps_only = imported(tmp_path / "ansor", FIXTURES / "ansor_v0.6.log")
    with pytest.raises(InputError, match="no MetaSchedule programs"):
        export_metaschedule(steps_only, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*"))
