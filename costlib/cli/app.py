"""The command line's frame: the commands, and what becomes of errors."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from costlib import __version__
from costlib.cli.commands import Commands
from costlib.errors import CostlibError, DatasetError, InputError, StorageError
from costlib.tuning.interrupt import ended_like_ctrl_c

_INTERRUPTED = 130
_KEPT = "interrupted; what was finished until then is kept"

_log = logging.getLogger("costlib")

app = typer.Typer(
    name="costlib",
    cls=Commands,
    help="Tune tensor programs for Apache TVM with pretrained cost models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"costlib {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results and errors, nothing else.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show where an error comes from, too.")
    ] = False,
) -> None:
    """Tune tensor programs for Apache TVM with pretrained cost models."""
    if quiet and verbose:
        raise InputError("--quiet and --verbose contradict each other; choose one")
    if verbose:
        logging.basicConfig(format="%(name)s: %(message)s")
    _log.setLevel(logging.ERROR if quiet else logging.DEBUG if verbose else logging.NOTSET)


_UsageError: type[Any] = typer.BadParameter.__bases__[0]
_EVERYWHERE = {"--quiet", "-q", "--verbose", "-v"}
"""Options that may come after the command, too."""


def run() -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:]
    options = words[: words.index("--")] if "--" in words else words
    first = [word for word in options if word in _EVERYWHERE]
    rest = [word for word in options if word not in _EVERYWHERE] + words[len(options) :]
    try:
        with ended_like_ctrl_c():
            code = app([*first, *rest], prog_name="costlib", standalone_mode=False) or 0
            if code == _INTERRUPTED:
                raise SystemExit(code)
            return code
    except KeyboardInterrupt:
        return _fail(_KEPT, _INTERRUPTED)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            return _fail(_KEPT, _INTERRUPTED)
        return stop.code if isinstance(stop.code, int) else 0
    except _UsageError as error:
        return _explain(error)
    except CostlibError as error:
        return _fail(" ".join(str(error).split()), error.exit_code)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return _fail(f"{error.strerror or error}{where}", StorageError.exit_code)
    except (ImportError, MemoryError, RuntimeError) as error:
        from costlib.measure.faults import fault_of, is_out_of_memory, why_died

        if not is_out_of_memory(error) and fault_of(error) is None:
            raise
        return _fail(why_died(f"{type(error).__name__}: {error}"), CostlibError.exit_code)
    except BaseException as error:
        # Polars, and what its Rust panics with, which is no Exception; imported only when at work.
        if type(error).__module__ not in ("polars.exceptions", "pyo3_runtime"):
            raise
        reason = str(error).splitlines()[0]
        return _fail(
            f"a part of the dataset is damaged ({reason}); `costlib dataset verify` names it",
            DatasetError.exit_code,
        )
    return 0


def _explain(error: Any) -> int:
    """Say in a line what is wrong with the arguments; without any, help is shown already."""
    message = error.format_message()
    if not message:
        return int(error.exit_code)
    command = error.ctx.command_path if error.ctx else "costlib"
    message = message[:1].lower() + message[1:].rstrip(".")
    return _fail(f"{message}; `{command} --help` says what there is", error.exit_code)


def _fail(message: str, code: int) -> int:
    _log.debug("where it comes from", exc_info=True)
    typer.echo(f"costlib: {message}", err=True)
    return code
