"""The command line as a person uses it: output and exit code looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from command_line import costlib

from costlib.cli import app
from costlib.cli.tune import _apart
from costlib.data.dataset import Dataset
from costlib.errors import UnknownNameError
from costlib.hub import Bundle, list_bundles, load_pretrained

COMMANDS = (
    ("doctor",),
    ("hardware",),
    ("tasks",),
    ("collect",),
    ("dataset", "info"),
    ("dataset", "verify"),
    ("train",),
    ("evaluate",),
    ("models",),
    ("tune",),
    ("profile",),
    ("report",),
    ("dashboard",),
)


def start(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run it in a process of its own."""
    return forked.run([sys.executable, "-m", "costlib", *map(str, arguments)])


def succeed(*arguments: object) -> object:
    """Run with ``--json`` and return what the last line of stdout holds."""
    process = costlib(*arguments, "--json")
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: tuple[str, ...]) -> None:
    process = costlib(*command, "--help")
    assert process.returncode == 0
    assert f"costlib {' '.join(command)}" in process.stdout
    assert "Example" in process.stdout


def test_version() -> None:
    import costlib as package

    assert start("--version").stdout.strip() == f"costlib {package.__version__}"


def test_quiet_and_verbose(tmp_path: Path) -> None:
    plain = start("dataset", "info", tmp_path / "none")
    assert plain.returncode and plain.stderr.count("\n") == 1
    verbose = start("--verbose", "dataset", "info", tmp_path / "none")
    assert verbose.returncode == plain.returncode
    assert "Traceback" in verbose.stderr and plain.stderr in verbose.stderr
    quiet = start("--quiet", "dataset", "info", tmp_path / "none")
    assert quiet.stderr == plain.stderr
    assert "contradict" in start("--quiet", "--verbose", "models").stderr


def test_quiet_shows_no_stages(tmp_path: Path) -> None:
    arguments = ("tune", "matmul 32 32 32", "--trials", 1, "--out", tmp_path / "run", "--json")
    loud = costlib(*arguments)
    assert "tuning" in loud.stderr and json.loads(loud.stdout)
    quiet = costlib("--quiet", *arguments, "--resume")
    assert not quiet.stderr and json.loads(quiet.stdout)


def test_shells_can_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typer offers it to the shell that it was started from; here, to the one that is named."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    script = start("--show-completion", "bash")
    assert script.returncode == 0 and "COMPLETE" in script.stdout.upper()


def test_hardware() -> None:
    found = succeed("hardware", "--mcpu", "x86-64-v2")
    assert isinstance(found, dict)
    assert found["target"]["mcpu"] == "x86-64-v2"
    assert "hardware_id" in start("hardware").stdout


def test_doctor() -> None:
    found = succeed("doctor")
    assert isinstance(found, list)
    checks = {finding["check"]: finding for finding in found}
    assert checks.keys() >= {"apache-tvm, -ffi", "usable cores", "slow moments, memory"}
    assert not any(finding["fatal"] for finding in found)
    assert "advice" in costlib("doctor").stdout


def test_tasks() -> None:
    found = succeed("tasks", "matmul 32 64 16")
    assert isinstance(found, list)
    assert found[0].keys() >= {"workload_id", "name", "weight", "flops"}
    assert found[0]["flops"] == 2 * 32 * 64 * 16


def test_sources_are_listed() -> None:
    found = succeed("tasks")
    assert isinstance(found, dict)
    assert "resnet_18" in found["networks"]
    assert any(usage.startswith("matmul") for usage in found["operators"])


def test_collect_info_verify_train_evaluate_tune(tmp_path: Path) -> None:
    data, bundle = tmp_path / "data", tmp_path / "bundle"
    sources = ("matmul 32 32 32", "matmul 32 64 32")
    summary = succeed("collect", *sources, "--out", data, "--programs", 12)
    assert isinstance(summary, dict)
    assert (summary["measurements"], summary["tasks"]) == (24, 2)
    assert succeed("dataset", "info", data) == summary
    assert (data / "README.md").is_file()

    metrics = succeed("train", data, "--out", bundle)
    assert isinstance(metrics, dict)
    assert metrics["tasks"] == 1
    evaluated = succeed("evaluate", bundle, "--on", data)
    assert isinstance(evaluated, dict)
    assert evaluated["top1"] == metrics["top1"]
    low, high = evaluated["top1_interval"]
    assert low <= evaluated["top1"] <= high
    assert evaluated["judged_on"].startswith(f"1 tasks of {data} on ")
    everything = costlib("evaluate", bundle, "--on", data, "--all").stdout
    assert "; 1 of them it was trained on" in everything

    run = tmp_path / "run"
    result = succeed("tune", sources[0], "--pretrained", bundle, "--trials", 4, "--out", run)
    assert isinstance(result, dict)
    assert result.keys() >= {"networks", "trials", "elapsed_s", "stopped", "picture"}
    (network,) = result["networks"]
    assert network.keys() >= {"latency_before_s", "latency_after_s", "pytorch_latency_s"}
    assert network["max_abs_error"] < 1e-4
    assert Path(result["picture"]).is_file()
    assert Path(network["library"]).is_file()
    profile = succeed("profile", run, "--picture", tmp_path / "timeline.svg")
    assert isinstance(profile, dict)
    parts = (profile[part] for part in ("tasks_s", "dispatch_s", "unexplained_s"))
    assert sum(parts) == pytest.approx(profile["network_s"])
    assert (tmp_path / "timeline.svg").is_file()
    assert "the network" in costlib("profile", run).stdout


def test_engines_may_be_named_one_after_the_other() -> None:
    """Click takes all but the first for sources."""
    sources = ["bert_tiny", "onnxruntime", "torch.compile"]
    assert _apart(sources, ["openvino"]) == (
        ["bert_tiny"],
        ["openvino", "onnxruntime", "torch.compile"],
    )
    assert _apart(sources, []) == (sources, []), "a network may be called so"
    with pytest.raises(UnknownNameError, match="did you mean openvino"):
        _apart(["bert_tiny"], ["open-vino"])


def test_verify_exit_codes(dataset: Dataset, tmp_path: Path) -> None:
    import shutil

    copy = Path(shutil.copytree(dataset.path, tmp_path / "copy"))
    part = next((copy / "sketches").glob("part-*"))
    part.write_bytes(part.read_bytes()[:50])
    process = costlib("dataset", "verify", copy)
    assert process.returncode == 1
    assert part.name in process.stdout


def test_models() -> None:
    found = succeed("models")
    assert isinstance(found, list)
    assert "cpu-gbdt" in [manifest["name"] for manifest in found]


def test_published_models() -> None:
    shelf = list_bundles()["cpu-gbdt"].parent
    found = succeed("models", f"file://{shelf}")
    assert {one["address"] for one in found} >= {f"file://{shelf}/cpu-gbdt"}
    assert all(one["revision"] is None for one in found)
    listed = costlib("models", f"file://{shelf}").stdout
    assert "was trained on measurements of" in listed and "pinned" not in listed


@pytest.mark.parametrize("words", [(), ("dataset",)])
def test_without_a_command_there_is_help_and_no_error(words: tuple[str, ...]) -> None:
    process = costlib(*words)
    assert process.returncode == 2
    assert "Commands" in process.stdout
    assert process.stderr == ""


def test_a_command_imports_no_other() -> None:
    script = (
        "import sys; from costlib.cli.app import run; sys.argv[1:] = ['models']; run(); "
        "assert not {'costlib.cli.tune', 'costlib.cli.collect'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_models_reads_no_model() -> None:
    script = (
        "import sys; from costlib.cli.app import run; sys.argv[1:] = ['models']; run(); "
        "assert not {'lightgbm', 'tvm', 'polars', 'sklearn'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_ctrl_c_while_the_commands_are_made_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "app", interrupted)
    assert app.run() == 130
    assert capsys.readouterr().err == (
        "costlib: interrupted; what was finished until then is kept\n"
    )


def test_stored_figures_are_shown(bundle: Bundle) -> None:
    found = succeed("evaluate", bundle.path)
    assert isinstance(found, dict)
    assert found["top1"] == bundle.manifest.metrics["top1"]
    assert "when it was made" in found["judged_on"]


def test_quiet_may_come_last(dataset: Dataset) -> None:
    first = costlib("--quiet", "tasks", "softmax 8 8")
    last = costlib("tasks", "softmax 8 8", "-q")
    assert first.returncode == last.returncode == 0
    assert first.stdout == last.stdout


def test_targets_as_tvm_writes_them() -> None:
    found = succeed("hardware", "--target", "llvm -mcpu=x86-64-v2 -num-cores 1")
    assert found == succeed("hardware", "--mcpu", "x86-64-v2", "--cores", "1")
    assert succeed("hardware", "--mcpu", "native") == succeed("hardware")


def test_people_get_tables(dataset: Dataset, bundle: Bundle) -> None:
    shipped = load_pretrained()
    assert "measurements" in costlib("dataset", "info", dataset.path).stdout
    assert "top1" in costlib("evaluate", bundle.path, "--on", dataset.path).stdout
    models = costlib("models").stdout
    assert all(f"  {entry.hardware.hardware_id}\n" in models for entry in shipped.manifest.hardware)
    assert "MFLOP" in costlib("tasks", "softmax 8 8").stdout


BAD = {
    "unknown network": (("tasks", "resnet18"), "did you mean resnet_18"),
    "unknown operator": (("tasks", "matmull 1 2 3"), "did you mean matmul"),
    "operator without its shape": (("tasks", "matmul 1 2"), "matmul M N K"),
    "no such file": (("tasks", "net.onnx"), "net.onnx"),
    "no such dataset": (("dataset", "info", "no-such-folder"), "no-such-folder"),
    "unknown bundle": (("evaluate", "cpu-gdbt"), "did you mean cpu-gbdt"),
    "no such bundles": (("models", "nope*"), "unknown bundle 'nope*'"),
    "no bundles there": (("models", "file:///no/such/place"), "no bundle at file:///no/such/place"),
    "unknown hardware": (
        ("evaluate", "BUNDLE", "--on", "DATASET", "--hardware", "nosuch"),
        "unknown hardware of this dataset 'nosuch'",
    ),
    "no dataset to choose from": (("evaluate", "BUNDLE", "--all"), "name it with --on"),
    "unknown option": (("tune", "bert_tiny", "--trails", "8"), "`costlib tune --help`"),
    "unknown command": (("tone", "bert_tiny"), "`costlib --help`"),
    "no argument": (("report",), "missing argument 'targets'"),
    "a time that is past": (("tune", "bert_tiny", "--minutes", "-1", "--out", "x"), "--minutes"),
    "no cores": (("hardware", "--cores", "0"), "--cores"),
    "a target of another machine": (
        ("hardware", "--target", "llvm -mcpu=diamondrapids -num-cores 1"),
        "cannot execute code for 'diamondrapids'",
    ),
    "a target that says too much": (
        ("hardware", "--target", "llvm -mcpu=x86-64 -mfloat-abi=soft"),
        "after llvm: -mattr, -mcpu, -num-cores",
    ),
    "zero trials": (("tune", "bert_tiny", "--trials", "0", "--out", "x"), "at least 1"),
    "an unknown objective": (
        ("tune", "matmul 8 8 8", "--objective", "best", "--out", "x"),
        "no objective is called 'best'",
    ),
    "unknown layouts": (
        ("tune", "matmul 8 8 8", "--layouts", "nhwc", "--out", "x"),
        "no layouts are called 'nhwc'; use channels-last, all, given",
    ),
    "unknown layouts to check": (
        ("check", "matmul 8 8 8", "--layouts", "nhwc"),
        "no layouts are called 'nhwc'",
    ),
    "unknown weights": (("tune", "matmul 8 8 8", "--weights", "int3", "--out", "x"), "choose int8"),
    "zero programs": (("collect", "matmul 8 8 8", "--out", "x", "--programs", "0"), "at least 1"),
    "unknown processor": (("hardware", "--mcpu", "pentium9"), "pentium9"),
    "too many cores": (("hardware", "--cores", "4096"), "4096"),
    "unknown model": (("train", "DATASET", "--out", "x", "--model", "gbd"), "did you mean gbdt"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(
    case: str, dataset: Dataset, bundle: Bundle, tmp_path: Path
) -> None:
    arguments, hint = BAD[case]
    places = {"x": tmp_path / "x", "DATASET": dataset.path, "BUNDLE": bundle.path}
    process = costlib(*(places.get(argument, argument) for argument in arguments))
    assert process.returncode not in {0, 1}
    assert "Traceback" not in process.stderr
    last = process.stderr.strip().splitlines()[-1]
    assert "costlib: " in last
    assert hint in last
    assert not (tmp_path / "x").exists()


def test_no_permission_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = costlib("collect", "matmul 8 8 8", "--out", tmp_path / "file" / "data")
    assert process.returncode == 4
    assert "Traceback" not in process.stderr
