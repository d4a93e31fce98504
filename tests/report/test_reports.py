from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_profile, made_result, write_run

from costlib.cli.app import run as run_command
from costlib.data.dataset import Dataset
from costlib.errors import CostlibError, InputError, UnknownNameError
from costlib.hub import Bundle
from costlib.hub.evaluate import examine, judged_on
from costlib.metaschedule import Builder, Runner
from costlib.report import compare, report
from costlib.report.curve import network_figure
from costlib.report.evaluation import evaluation_report
from costlib.report.found_run import find_run, time_now_s
from costlib.report.page import Fold, Page, Table, render
from costlib.report.verdict import network_sentence, verdict
from costlib.tuning.comparison import EngineResult
from costlib.tvm_compat import ms
from costlib.workloads import extract_tasks


def tables(page: Page) -> dict[str, list[Table]]:
    return {s.title: [p for p in s.parts if isinstance(p, Table)] for s in page.sections}


def test_a_run(run: Path) -> None:
    page = report(str(run))
    assert "matmul 64 64 64" in page.title and ("trials", "6") in page.facts
    (origins,) = tables(page)["What each part of the search gave"]
    assert sum(int(row[1]) for row in origins.rows) == 6
    assert sum(int(row[4]) for row in origins.rows) == 1, "one task has one best program"
    (predictions,) = tables(page)["Predicted against measured"]
    assert predictions.rows[0][1] == 6
    (task,) = (section for section in page.sections if section.anchor.startswith("task-"))
    assert (
        task.title.startswith("matmul 64\u00d764 · ") and predictions.rows[0][0].text == task.title
    )
    steps, program = (part for part in task.parts if isinstance(part, Fold))
    assert "sample_perfect_tile" in str(steps.content)
    assert "T.parallel" in str(program.content) or "T.vectorized" in str(program.content)
    names = {picture.name for picture in page.pictures}
    curves = {"curve-1-trials", "curve-1-seconds"}
    assert names == {*curves, "timeline-1", task.anchor, "predictions"}


def test_a_run_beside_stock(run: Path, tmp_path: Path) -> None:
    """MetaSchedule's own database, as its search leaves it behind."""
    (task,) = extract_tasks("matmul 64 64 64")
    work = tmp_path / "stock"
    builder = Builder()
    with builder.measurer:
        ms.tune_tir(
            mod=task.mod,
            target=task.tvm_target(),
            work_dir=str(work),
            max_trials_global=8,
            num_trials_per_iter=4,
            num_tuning_cores=1,
            builder=builder,
            runner=Runner(builder),
            cost_model="random",
            strategy=ms.search_strategy.EvolutionarySearch(population_size=8),
        )
    page = report(str(run), work)
    ((row,),) = [table.rows for table in tables(page)["Beside stock"]]
    assert row[0].text == task.title
    assert (row[1], row[3]) == ("6", "8")
    assert row[5] == "not reached" or 1 <= int(row[5]) <= 6
    assert any(picture.name.startswith("against-") for picture in page.pictures)


def test_a_run_beside_itself(run: Path) -> None:
    (table,) = tables(report(str(run), run))["Beside run"]
    (row,) = table.rows
    assert row[1:3] == row[3:5]
    assert 1 <= int(row[5]) <= 6


def test_nothing_to_compare_with(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a run of costlib nor MetaSchedule's"):
        report(str(run), tmp_path)
    with pytest.raises(InputError, match="is not a run"):
        report("cpu-gbdt", run)


def test_a_run_whose_bundle_is_gone(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    text = (copy / "result.json").read_text()
    (copy / "result.json").write_text(text.replace('"cpu-gbdt"', '"gone"'))
    section = next(s for s in report(str(copy)).sections if s.title.startswith("Predicted"))
    assert "gone" in section.text and not section.parts


@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_a_run_without_a_result_is_shown_by_its_trials(
    run: Path, tmp_path: Path, content: str | None
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "result.json").unlink()
    if content is not None:
        (copy / "result.json").write_text(content)
    page = report(str(copy))
    assert "This run has no result" in str(page.verdict[0])
    assert ("trials", "6") in page.facts
    assert {"curve-1-trials", "curve-1-seconds"} <= {picture.name for picture in page.pictures}


def test_a_result_that_contradicts_itself(tmp_path: Path) -> None:
    result = made_result(tasks=3)
    folder = write_run(tmp_path / "run", result.model_copy(update={"tasks": result.tasks[:2]}))
    page = report(str(folder))
    assert "a trial is of none of its tasks" in str(page.verdict[0])


def test_a_run_of_an_older_version(run: Path, tmp_path: Path) -> None:
    """It knew no titles, spreads, expectations or profiles."""
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "profile.json").unlink()
    result = json.loads((copy / "result.json").read_text())
    del result["expected_gain"]
    for network in result["networks"]:
        del network["spread_s"], network["outputs"], network["doubtful"]
    for task in result["tasks"]:
        del task["title"], task["left"]
    (copy / "result.json").write_text(json.dumps(result))
    texts = {section.title: section.text for section in report(str(copy)).sections}
    assert any(title.startswith("matmul 64\u00d764 · ") for title in texts)
    assert "`costlib profile copy` does" in texts["Where the time of a call goes"]


def test_other_engines_stand_beside_pytorch(tmp_path: Path) -> None:
    result = made_result()
    engines = (
        EngineResult(name="openvino", title="OpenVINO", latency_s=2e-3),
        EngineResult(name="onnxruntime", title="ONNX Runtime", latency_s=None, problem="it fails"),
    )
    network = result.networks[0].model_copy(update={"engines": engines, "doubtful": ("OpenVINO",)})
    folder = write_run(tmp_path / "run", result.model_copy(update={"networks": (network,)}))
    page = report(str(folder))
    first, why = tables(page)["Networks"]
    assert first.columns[-2:] == (">OpenVINO", ">ONNX Runtime")
    assert list(first.rows[0][-2:]) == ["2.00 ms? (2.00x)", "-"]
    assert [list(line) for line in why.rows] == [["net", "ONNX Runtime", "it fails"]]
    curve = network_figure(find_run(folder), network, "trials")
    labels = [line.get_label() for line in curve.axes[0].lines]
    assert "OpenVINO" in labels and "ONNX Runtime" not in labels


def test_what_a_run_says_first(tmp_path: Path) -> None:
    result = made_result(("fast", "slow"))
    run = find_run(write_run(tmp_path / "run", result))
    fast, slow, gain, where = ("".join(map(str, sentence)) for sentence in verdict(run))
    assert "fast beats PyTorch: it takes 1.00 ms, PyTorch 1.50 ms; it is 1.50 times" in fast
    assert "1.27 to 1.89 times as fast" in fast and slow.startswith("slow beats")
    assert "100 trials" in gain and "12 %" in gain
    heaviest = max(result.tasks, key=time_now_s)
    assert where.startswith("Of the tasks' time now, 64 % is in " + heaviest.title)
    undecided = result.networks[0].model_copy(update={"pytorch_latency_s": 1.02e-3})
    undecided = undecided.model_copy(update={"spread_s": {"tuned": (1, 1.1), "PyTorch": (1, 1.1)}})
    assert network_sentence(undecided, run.unit).endswith("too close to tell.")


def test_a_profile_says_where_the_time_is(tmp_path: Path) -> None:
    result = made_result()
    run = find_run(write_run(tmp_path / "run", result, made_profile(result)))
    heaviest = max(result.tasks, key=time_now_s)
    where = "".join(map(str, verdict(run)[2]))
    assert where.startswith("A call of net takes 1.00 ms: its kernels")
    assert f"Most is in {heaviest.title} (" in where
    section = next(one for one in report(str(run.folder)).sections if one.anchor == "profile")
    sums, kernels = (part for part in section.parts if isinstance(part, Table))
    assert sums.rows[0][:2] == ["net", "1.00 ms"]
    assert kernels.rows[0][0].text == heaviest.title
    assert sum(row[2].share for row in kernels.rows) == pytest.approx(0.9)


def test_ten_thousand_tasks(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "big", made_result(tasks=10_000, trials=10_000))
    page = report(str(folder))
    (table,) = tables(page)["Where the time and the trials went"]
    (section,) = (one for one in page.sections if table in one.parts)
    assert len(table.rows) == 100 and "9,900 tasks" in section.text
    html = render(page)
    assert all(f'id="{row[0].address[1:]}"' in html for row in table.rows)
    assert len(html) < 4_000_000


def test_a_hundred_runs(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / f"r{n}", made_result(seed=n % 5, bundle=f"b{n // 5}", faster=1 + n))
        for n in range(100)
    ]
    page = compare(list(map(str, folders)))
    first = "".join(map(str, page.verdict[0]))
    assert first.startswith("net: r95 (5 seeds) ends fastest")
    assert "Every seed of the one beats every seed of the other" in first
    (table,) = tables(page)["Networks"]
    assert len(table.rows) == 20 and {row[2] for row in table.rows} == {"5"}


def test_runs_of_one_seed_are_counted_as_runs(tmp_path: Path) -> None:
    seeds = {"a": (0, 0), "b": (1, 2)}
    folders = [
        write_run(tmp_path / f"{bundle}{n}", made_result(seed=seed, bundle=bundle, faster=faster))
        for faster, (bundle, pair) in enumerate(seeds.items(), 1)
        for n, seed in enumerate(pair)
    ]
    page = compare(list(map(str, folders)))
    assert {row[1] for row in tables(page)["Networks"][0].rows} == {"a0 (2 runs)", "b0 (2 seeds)"}
    assert "Every run of the one beats every run of the other" in "".join(map(str, page.verdict[0]))


def test_names_of_runs_are_texts(tmp_path: Path) -> None:
    """Not mathematics, not markup, and not hidden from the legend."""
    names = ("_first", "a$\\frac{$", "<b>bold</b>")
    folders = [
        write_run(tmp_path / name.replace("/", "-"), made_result(bundle=name)) for name in names
    ]
    html = render(compare(list(map(str, folders))))
    assert "<b>" not in html and "&lt;b&gt;bold" in html
    assert html.count("> _first<") == 2 and "a$\\frac{$</text>" in html


def test_runs_with_nothing_in_common(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, made_result((name,))) for name in ("a", "b")]
    page = compare(list(map(str, folders)))
    assert page.verdict == [["These runs have no network in common, so none is faster."]]


def test_a_dataset_of_one_task(run: Path) -> None:
    page = report(str(run / "trials"))
    assert ("tasks", "1") in page.facts
    assert "No tasks are held out" in str(page.verdict[-1])
    assert "programs" not in {picture.name for picture in page.pictures}, "one bar is no picture"


def test_an_evaluation_says_where_the_model_is_wrong(dataset: Dataset, bundle: Bundle) -> None:
    found = examine(bundle, dataset, everything=True)
    page = evaluation_report(bundle, found, judged_on(bundle, dataset, everything=True))
    parts = tables(page)
    assert {row[0] for row in parts["By operator"][0].rows} == {"matmul", "softmax"}
    assert sum(int(row[1]) for row in parts["By operator"][0].rows) == 3
    (importance,) = parts["What it looks at"]
    assert sum(row[1].share for row in importance.rows) == pytest.approx(1)
    (wrong,) = parts.get("Where it is wrong") or [Table((), [])]
    assert all(row[4] != "1 of 20" for row in wrong.rows)


def test_the_shipped_dataset() -> None:
    page = report(str(Path(__file__).parents[2] / "datasets" / "zoo"))
    (operators,) = tables(page)["Operators"]
    measured = sum(int(row[2].replace(",", "")) for row in operators.rows)
    assert f"{measured:,}" == dict(page.facts)["measurements"]
    assert {"depthwise_conv2d", "grouped_conv2d", "dense"} <= {row[0] for row in operators.rows}


@pytest.mark.parametrize("name", ["cpu-gbdt", "cpu-multi"])
def test_a_shipped_bundle(name: str) -> None:
    page = report(name)
    assert name in page.title
    ranking = tables(page)["How well it ranks"]
    assert ranking[1].rows[0][0] == "all" and len(ranking[1].rows) == 6
    names = {picture.name for picture in page.pictures}
    assert {"ranking-top1", "calibration", "learning-1"} <= names
    assert sum(row[1].share for row in tables(page)["What it looks at"][0].rows) == pytest.approx(1)


def test_what_is_none_of_them(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        report("no-such-thing")
    with pytest.raises(CostlibError, match="bundle"):
        report(str(tmp_path))


def test_the_command_writes_page_and_pictures(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    out, figures = tmp_path / "run.html", tmp_path / "figures"
    arguments = ["costlib", "report", str(run), "--out", str(out), "--figures", str(figures)]
    monkeypatch.setattr("sys.argv", arguments)
    assert run_command() == 0
    assert str(out) in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")
    assert len(list(figures.iterdir())) == 10


def test_a_page_says_what_its_numbers_are(run: Path) -> None:
    html = render(report(str(run)))
    assert "became best" in html and "GFLOP/s" in html
