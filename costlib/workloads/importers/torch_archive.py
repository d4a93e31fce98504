"""PyTorch's saved programs (``.pt2``), reduced to data.

``torch.export.load`` makes Python source of names, symbolic extents and guards, and executes it;
it calls whatever function of PyTorch a file names, imports the modules that its types name, and
loads the shared libraries that come with it (``torch/export/pt2_archive/_package.py``,
``torch/_export/serde/serialize.py``, ``torch/utils/_pytree.py``, all of torch 2.13).
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

_PROGRAM = "models/model.json"
_ENTRIES = re.compile(
    r"archive_format|archive_version|byteorder|\.data/\w+|models/model\.json"
    r"|data/weights/\w+(\.json)?|data/constants/(model_constants_config\.json|tensor_\w+)"
    r"|data/sample_inputs/model\.pt"
)
_CALLS = re.compile(
    r"torch\.ops\.(aten(?!\.(save|from_file)\b)|prims|quantized_decomposed|torchvision)\.[a-z_]\w*\.(?!__)\w+"
    r"|torch\.ops\.higher_order\.wrap_with_(autocast|set_grad_enabled)|_operator\.getitem",
    re.ASCII,
)
_PLAIN = re.compile(r"[\w.+-]*", re.ASCII)
"""Text that calls nothing, whatever it is made part of."""
_SYMBOL = r"Symbol\('[a-z]\d{1,6}', positive=True, integer=True\)"
_EXTENT = re.compile(
    rf"({_SYMBOL}|Integer\(-?\d{{1,9}}\)|Pow\({_SYMBOL}, Integer\([2-4]\)\)"
    r"|Mul\(|Add\(|FloorDiv\(|Mod\(|Max\(|Min\(|, |\)){1,64}",
    re.ASCII,
)
"""An extent as SymPy writes it: sums and the like of symbols and numbers, which compute nothing
else."""
_FUNCTIONS = {"target", "as_operator"}
_IMPORTING = {"__enum__", "default_factory_module"}


def data_of(path: Path) -> io.BytesIO:
    """Copy a saved program with nothing in it that loading would execute.

    Parameters
    ----------
    path
        What ``torch.export.save`` wrote.

    Returns
    -------
    io.BytesIO
        For ``torch.export.load``. Where the source of each operator was, and guards, are left
        out, as is all that is no part of a program.

    Raises
    ------
    ValueError
        There is something in it that loading would execute.
    Exception
        Whatever :mod:`zipfile` and :mod:`json` raise for damaged files.
    """
    copy = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as data:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError("it is compressed, which PyTorch's own files are not")
        for entry in entries:
            name = entry.filename.partition("/")[2]
            if name == _PROGRAM:
                program = json.loads(archive.read(entry)) | {"guards_code": []}
                _check(program)
                data.writestr(entry.filename, json.dumps(program))
            elif _ENTRIES.fullmatch(name):
                data.writestr(entry.filename, archive.read(entry))
    copy.seek(0)
    return copy


def _check(value: Any) -> None:
    """Raise ``ValueError`` at the first text that loading would execute."""
    if isinstance(value, list):
        for item in value:
            _check(item)
    elif isinstance(value, dict) and not _is_argument(value):
        if "metadata" in value:
            value["metadata"] = {}
        for key, item in value.items():
            _check_text(key)
            if key in _IMPORTING:
                raise ValueError(f"it imports modules: '{key}'")
            if key == "expr_str":
                if not (isinstance(item, str) and _EXTENT.fullmatch(item)):
                    raise ValueError(f"it has the extent {str(item)[:80]!r}")
                continue
            if key in _FUNCTIONS and isinstance(item, str) and not _CALLS.fullmatch(item):
                raise ValueError(f"it calls {item!r}")
            _check(item)
    elif isinstance(value, str):
        _check_text(value)


def _is_argument(value: dict[str, Any]) -> bool:
    """Whether it is text that an operator is called with, which PyTorch quotes."""
    match value:
        case {"as_string": str()} | {"as_strings": [*_]}:
            return len(value) == 1 and all(isinstance(t, str) for v in value.values() for t in v)
    return False


def _check_text(text: str) -> None:
    """Take plain text, or JSON of nothing else: that is how types of arguments are saved."""
    if not _PLAIN.fullmatch(text):
        try:
            content = json.loads(text)
        except ValueError:
            raise ValueError(f"it has {text[:80]!r} where a name should be") from None
        _check(content)
