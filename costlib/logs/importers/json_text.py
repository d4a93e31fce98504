"""The JSON values in a file, one after the other, however it is compressed, encoded and laid out.

A log may have a record on each line, as the tools write it, be pretty-printed, hold its records in
one array, or with a comma or nothing between them. So lines do not matter: each value is read to
its end, and what is between two is passed over, brackets around all of them included. Where a
value is damaged, reading goes on at the next line that is not indented like the inside of it.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader
from itertools import chain
from typing import Any

from costlib.logs.importers.record import SkippedRecordError

MAX_VALUE = 64 * 2**20
"""Characters of a value; a file of junk may be one, and a small one may decompress to it."""

_PIECE = 2**16
_COMPRESSIONS: dict[bytes, Callable[[BufferedReader], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
_DAMAGES = (EOFError, OSError, zlib.error, lzma.LZMAError)
"""What reading a damaged compressed file raises."""

_CONTAINERS = (
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"7z\xbc\xaf'\x1c", "a 7z archive"),
    (0, b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (0, b"SQLite format 3\0", "a compressed SQLite file"),
    (257, b"ustar", "a tar archive"),
)

_BETWEEN = re.compile(r"(?:[\s,\]\ufeff\0]|\[(?=\s*[\[{]))*")
"""Between two values. A bracket before another one is that of an array around all values; zeros
are what a file system leaves where a machine went down.
"""

_ASCII = re.compile(r"[\t-~]")

_LINE_END = re.compile(r"\n")

_LONGEST_WORD = 16
"""Characters; JSON that was cut off fails this near to its end, as in ``-Infinity``."""

_REPLACING = "costlib.replacing"
_NO_TEXT = "\udcff"
"""Stands for bytes that are no text; half of a surrogate pair cannot be stored either."""

NOT_JSON = "not JSON, or cut off"

_decode = json.JSONDecoder().raw_decode


def read_values(stream: BufferedReader) -> Iterator[Any]:
    """Yield the JSON values of a file, in order, without comments.

    Parameters
    ----------
    stream
        The file, at its beginning: JSON in UTF-8, UTF-16 or UTF-32, with or without a byte order
        mark; perhaps compressed by gzip, bzip2 or xz.

    Yields
    ------
    object
        A value, or the :class:`SkippedRecordError` that says why there is none.
    """
    faults: list[SkippedRecordError] = []
    data = _unpacked(stream, faults)
    first = next(data, b"")
    for place, magic, name in _CONTAINERS:
        if first.startswith(magic, place):
            yield SkippedRecordError(f"{name}; unpack it first")
            return
    text = codecs.iterdecode(chain([first], data), _encoding(first), _REPLACING)
    yield from _Values(text)
    yield from faults


def parse_json(text: str) -> Any:
    """Read one value; raise :class:`SkippedRecordError` if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise SkippedRecordError(NOT_JSON) from None
    if not _is_text(value, text):
        raise SkippedRecordError(NOT_JSON)
    return value


class _Values:
    """Iterates over the values in pieces of text; holds little more of it than a value."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._place = 0
        self._indent = 0
        """Characters before the text in its first line."""

    def __iter__(self) -> Iterator[Any]:
        while self._is_there_more():
            if self._text[self._place] not in "[{":
                if self._text[self._place] != "#":
                    yield SkippedRecordError(NOT_JSON)
                self._go_past(_LINE_END)
                continue
            try:
                value, end = _decode(self._text, self._place)
            except (ValueError, RecursionError) as error:
                is_long = len(self._text) - self._place > MAX_VALUE
                if not is_long and self._may_go_on(error) and self._read():
                    continue
                yield SkippedRecordError("a value of over 64 MiB" if is_long else NOT_JSON)
                self._go_past(self._next_line())
                continue
            is_text = _is_text(value, self._text[self._place : end])
            self._place = end
            yield value if is_text else SkippedRecordError(NOT_JSON)

    def _is_there_more(self) -> bool:
        """Go past what is between values; say whether something follows."""
        while True:
            between = _BETWEEN.match(self._text, self._place)
            self._place = between.end() if between else self._place
            if self._place < len(self._text):
                return True
            if not self._read():
                return False

    def _may_go_on(self, error: Exception) -> bool:
        """Say whether a value may only seem damaged because not all of it has been read."""
        return isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_WORD
        )

    def _next_line(self) -> re.Pattern[str]:
        """Match up to the next line that is not inside of the value that begins here."""
        return re.compile(rf"\n[ \t]{{0,{self._column()}}}(?=[^\s\]}},])")

    def _column(self) -> int:
        line = self._text.rfind("\n", 0, self._place) + 1
        return self._place - line + (0 if line else self._indent)

    def _go_past(self, end: re.Pattern[str]) -> None:
        """Go to the end of the next match; to that of the text if there is none."""
        while not (found := end.search(self._text, self._place)):
            line = self._text.rfind("\n", self._place)
            self._place = line if line >= 0 else len(self._text)
            if not self._read():
                self._place = len(self._text)
                return
        self._place = found.end()

    def _read(self) -> bool:
        """Read on, at least as much as there is, so that long values are not tried often.

        Say whether there was more.
        """
        self._indent = self._column()
        pieces = [self._text[self._place :]]
        missing = max(_PIECE, len(pieces[0]))
        while missing > 0 and (piece := next(self._pieces, "")):
            pieces.append(piece)
            missing -= len(piece)
        self._text, self._place = "".join(pieces), 0
        return len(pieces) > 1


def _unpacked(stream: BufferedReader, faults: list[SkippedRecordError]) -> Iterator[bytes]:
    """Yield the content of a file; what makes it end early is added to ``faults``."""
    head = stream.peek(8)
    for magic, unpack in _COMPRESSIONS.items():
        if head.startswith(magic):
            try:
                with unpack(stream) as unpacked:
                    yield from iter(partial(unpacked.read1, _PIECE), b"")
            except _DAMAGES:
                faults.append(SkippedRecordError("the compressed file is damaged, or cut off"))
            return
    yield from iter(partial(stream.read1, _PIECE), b"")


def _encoding(head: bytes) -> str:
    """Tell the encoding of a text; a wide one must make it mostly ASCII, as all logs are."""
    found = json.detect_encoding(head)
    if found.startswith("utf-8"):
        return found
    text = head.decode(found, "replace")
    return found if 2 * len(_ASCII.findall(text)) > len(text) else "utf-8"


def _is_text(value: Any, source: str) -> bool:
    """Say whether all text in a value can be stored: not bytes that are none, nor half a pair."""
    if "\\u" in source or _NO_TEXT in source:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except ValueError:
            return False
    return True


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _NO_TEXT, error.end


codecs.register_error(_REPLACING, _replace)
