"""The dashboard as a browser's requests meet it, while a run grows under it."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from made_runs import made_result, write_run

from costlib.cli.app import run as run_command
from costlib.dashboard.server import application, serve
from costlib.dashboard.shelf import Shelf
from costlib.data.dataset import Dataset
from costlib.errors import InputError, StorageError


@contextmanager
def served(root: Path, token: str = "") -> Iterator[str]:
    """Serve a folder from a thread; yield the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application(root, token), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def get(address: str, **options: object) -> str:
    request = urllib.request.Request(address, **options)  # type: ignore[arg-type]
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def status(address: str, **options: object) -> int:
    try:
        get(address, **options)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_a_run_is_shown_while_it_grows(tmp_path: Path, dataset: Dataset) -> None:
    growing = tmp_path / "shown" / "team" / "growing"
    growing.mkdir(parents=True)
    with served(tmp_path / "shown") as address:
        assert "growing" not in get(f"{address}/")
        (growing / "run.json").write_text(json.dumps({"networks": ["net"]}))
        assert "/page/team/growing" in get(f"{address}/")
        page = f"{address}/page/team/growing"
        first = get(page)
        assert "No program has been measured yet" in first and 'http-equiv="refresh"' in first
        shutil.copytree(dataset.path, growing / "trials")
        second = get(page)
        measured = len(dataset.scan().collect())
        assert f"{measured} programs measured" in second and "No program" not in second
        assert "softmax 32×32" in second
        result = made_result(("net",))
        (growing / "result.json").write_text(result.model_dump_json())
        third = get(page)
        assert "net beats PyTorch" in third and 'http-equiv="refresh"' not in third
        assert 'href="/"' in third, "the way back"


def test_it_lists_runs_datasets_and_bundles(tmp_path: Path, dataset: Dataset) -> None:
    write_run(tmp_path / "a <b>", made_result())
    (tmp_path / "data").symlink_to(dataset.path)
    shutil.copytree(dataset.path, tmp_path / "more" / "data")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "bundle.json").write_text("{}")
    shelf = Shelf(tmp_path)
    found = [(entry.kind, entry.name) for entry in shelf.entries()]
    assert found == [("run", "a <b>"), ("bundle", "bundle"), ("dataset", "more/data")]
    with served(tmp_path) as address:
        index = get(f"{address}/")
        assert "a &lt;b&gt;" in index and "/page/a%20%3Cb%3E" in index
        assert "fast as PyTorch" in get(f"{address}/page/a%20%3Cb%3E")
        assert "cannot be shown" in get(f"{address}/page/bundle"), "a damaged one has a page"


@pytest.mark.parametrize("name", ["../outside", "%2e%2e/outside", "/etc", "link", "a\0", "run/.."])
def test_no_path_leaves_the_folder(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "outside", made_result())
    write_run(tmp_path / "shown" / "run", made_result())
    (tmp_path / "shown" / "link").symlink_to(tmp_path / "outside")
    assert Shelf(tmp_path / "shown").find(name) is None
    assert Shelf(tmp_path / "shown").find("run") is not None


def test_it_answers_its_owner_alone(tmp_path: Path) -> None:
    write_run(tmp_path / "outside", made_result())
    write_run(tmp_path / "shown" / "run", made_result())
    with served(tmp_path / "shown") as address:
        assert status(f"{address}/page/%2e%2e/outside") == 404
        assert status(f"{address}/", method="POST") == 405
        assert status(f"{address}/", headers={"Host": "somebody.example"}) == 400
    with served(tmp_path / "shown", token="secret") as address:
        assert status(f"{address}/") == 404
        assert status(f"{address}/wrong/") == 404
        assert status(f"{address}/wrong/page/run") == 404
        assert "/secret/page/run" in get(f"{address}/secret/")
        assert 'href="/secret/"' in get(f"{address}/secret/page/run")


def test_what_cannot_be_served(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        application(tmp_path / "nothing")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(StorageError, match="--port 0"),
    ):
        serve(tmp_path, "127.0.0.1", taken.getsockname()[1], print)


def test_without_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "costlib.dashboard.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr("sys.argv", ["costlib", "dashboard", str(tmp_path)])
    assert run_command() == InputError.exit_code
    assert "pip install 'costlib[dashboard]'" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_off_this_machine_the_address_holds_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: sockets[0].close())
    addresses: list[str] = []
    serve(tmp_path, host, 0, addresses.append)
    (address,) = addresses
    assert (len(address.split("/")[3]) > 16) == (host == "0.0.0.0")
