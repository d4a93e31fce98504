"""A figure as SVG for a page: its colours follow the page's, and it speaks at the mouse."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from matplotlib import rc_context
from matplotlib.figure import Figure

from costlib.files import write_file
from costlib.report.figures import TIPS

_BLACK = "#000000"
"""What matplotlib draws text and axes in; in a page that is the colour of the page's text."""

_COLOURS = """
svg { color: #1b1f24 }
text { fill: currentColor }
@media (prefers-color-scheme: dark) { svg { color: #e4e8ec } }
"""
"""Of text and axes in a file of its own: those of a page."""

_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold."""

ET.register_namespace("", _SVG)
ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def drawing(figure: Figure, salt: str) -> str:
    """Return a figure as an ``<svg>`` element.

    Parameters
    ----------
    figure
        The figure; what :func:`costlib.report.figures.tip` says of its parts becomes titles.
    salt
        A name that no other figure of the page has: marks that a figure refers to are named by it.
    """
    root = _element(figure, salt)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    root.set("style", f"max-width: {1.4 * width:.0f}pt")
    root.attrib.pop("height")
    return _text(root)


def save_drawing(figure: Figure, path: Path) -> None:
    """Write a figure as an SVG file that pages show as a picture: light or dark as they are.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    root = _element(figure, path.stem)
    style = ET.Element(f"{{{_SVG}}}style")
    style.text = _COLOURS
    root.insert(0, style)
    write_file(path, f"{_text(root)}\n".encode())


def _element(figure: Figure, salt: str) -> ET.Element:
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    root = ET.fromstring(text.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata":
                parent.remove(child)
    for group in list(root.iter(f"{{{_SVG}}}g")):
        name = group.attrib.pop("id", "")
        if name.startswith(TIPS):
            _add_titles(group, json.loads(name.removeprefix(TIPS)))
    return root


def _text(root: ET.Element) -> str:
    return ET.tostring(root, encoding="unicode").replace(_BLACK, "currentColor")


def _add_titles(group: ET.Element, texts: list[str]) -> None:
    """Give each point of a group its text, or the group the only one."""
    points = [use for use in group.iter(f"{{{_SVG}}}use") if _LINK in use.attrib]
    spoken = points if len(points) == len(texts) > 0 else [group]
    for element, text in zip(spoken, texts, strict=False):
        title = ET.Element(f"{{{_SVG}}}title")
        title.text = _CONTROL.sub("�", text)
        element.insert(0, title)
