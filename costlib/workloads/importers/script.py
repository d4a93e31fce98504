"""TVMScript as people write it: parsed, never executed.

TVM's parser evaluates the expressions of a script as Python, and strings in them as expressions
once more (symbolic shapes), so a script could do anything. It gets only what the file declares,
and that only if it says nothing but what TVMScript says:
:mod:`costlib.workloads.importers.script_language`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from costlib.errors import InputError, quoted
from costlib.tvm_compat import tvm
from costlib.workloads.importers.script_language import Language

_PLACE = re.compile(r"-->\s*\S+?:(\d+):\d+")


def parse_script(path: Path) -> Any:
    """Read the module, or the function, that a file of TVMScript declares.

    Imports, docstrings and whatever else stands beside it are passed over; a number, a name or a
    tuple of such that is given a name may be used in it.

    Returns
    -------
    IRModule, or a function
        As TVM's parser makes it.

    Raises
    ------
    InputError
        It is no TVMScript, declares nothing or several things, or holds Python.
    """
    try:
        text = path.read_text()
        file = ast.parse(text)
        language = Language(file)
        found = [node for node in file.body if language.declares(node)]
        if len(found) != 1:
            raise InputError(
                f"{path}: declares {'nothing' if not found else f'{len(found)} things'} to "
                "import; mark one class with @I.ir_module, or one function with @T.prim_func"
            )
        if (fault := language.fault(found[0])) is not None:
            raise InputError(f"{path}:{fault}")
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno or 1}: not TVMScript: {error.msg}") from None
    except (OSError, UnicodeDecodeError, RecursionError, MemoryError) as error:
        reason = quoted(error) if str(error) else "it is nested too deeply"
        raise InputError(f"{path}: not TVMScript: {reason}") from None
    try:
        return tvm.script.parse(_only(text, found[0]), language.names)
    except Exception as error:
        raise InputError(f"{path}{_reason(error)}") from None


def _only(text: str, node: Any) -> str:
    """Blank all lines but those of a declaration, so that the others keep their numbers."""
    first: int = min(decorator.lineno for decorator in node.decorator_list)
    lines = text.splitlines()
    return "\n" * (first - 1) + "\n".join(lines[first - 1 : node.end_lineno]) + "\n"


def _reason(error: Exception) -> str:
    """Say where TVM's parser stopped, and its own message."""
    place = _PLACE.search(str(error))
    message = quoted(error, 0).removeprefix("error:").strip()
    return f"{f':{place[1]}' if place else ''}: not TVMScript: {message}"
