"""All kinds of pages as a browser shows them: on a phone and a screen, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CUT = """
const cut = [];
for (const svg of document.querySelectorAll('svg')) {
  const frame = svg.getBoundingClientRect();
  if (!frame.width) continue;
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 ||
        box.top < frame.top - 1 || box.bottom > frame.bottom + 1) cut.push(text.textContent);
  }
}
return cut;
"""
"""Labels that reach over the edge of their figure."""

OVERLAPPING = """
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  const texts = [...svg.querySelectorAll('text')];
  const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
  for (let i = 0; i < boxes.length; i++) for (let j = 0; j < i; j++) {
    const [a, b] = [boxes[i][1], boxes[j][1]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 4) found.push(boxes[i][0] + ' / ' + boxes[j][0]);
  }
}
return found;
"""

CONTRAST = """
const light = c => {
  const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = e => {
  for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!c.startsWith('rgba(0, 0, 0, 0)')) return c;
  }
  return 'rgb(255, 255, 255)';
};
const low = [];
const texts = 'h1, h2, h3, p, a, li, dt, dd, th, td, summary, label, text';
for (const e of document.querySelectorAll(texts)) {
  const style = getComputedStyle(e);
  const colours = [e.tagName === 'text' ? style.fill : style.color, behind(e)].map(light);
  const [dark, bright] = colours.sort((a, b) => a - b);
  if ((bright + 0.05) / (dark + 0.05) < 4.5) low.push(e.textContent.slice(0, 40));
}
return low;
"""
"""Texts that WCAG's AA calls hard to read."""

BROKEN = """
return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))
  .filter(h => h.startsWith('#') && !document.getElementById(h.slice(1)));
"""


PROBLEMS = {
    "cut": CUT,
    "overlapping": OVERLAPPING,
    "hard to read": CONTRAST,
    "leads nowhere": BROKEN,
}


def show(browser: Any, page: Path, width: int, scheme: str) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.as_uri())


@pytest.mark.parametrize(("width", "scheme"), [(420, "dark"), (1280, "light")])
def test_every_page_can_be_read(browser: Any, pages: list[Path], width: int, scheme: str) -> None:
    problems = {}
    for page in pages:
        show(browser, page, width, scheme)
        assert not browser.get_log("browser"), "nothing is refused, nothing is missing"
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page
        too_wide = "return [...document.querySelectorAll('figure')].map(f => f.scrollWidth)"
        assert max(browser.execute_script(too_wide), default=0) <= width, page
        for kind, script in PROBLEMS.items():
            if found := browser.execute_script(script):
                problems[f"{kind} on {page.name}"] = found
        background = "return getComputedStyle(document.body).backgroundColor"
        is_dark = browser.execute_script(background) != "rgb(255, 255, 255)"
        assert is_dark == (scheme == "dark")
    assert not problems


def test_curves_are_switched_without_script(browser: Any, pages: list[Path]) -> None:
    (page,) = (page for page in pages if page.stem == "run")
    show(browser, page, 1280, "light")
    shown = "return [...document.querySelectorAll('.choice > div')].map(d => d.offsetHeight > 0)"
    assert browser.execute_script(shown) == [True, False]
    browser.find_element("css selector", ".choice > label:nth-of-type(2)").click()
    assert browser.execute_script(shown) == [False, True]


def test_a_link_leads_to_its_task(browser: Any, pages: list[Path]) -> None:
    (page,) = (page for page in pages if page.stem == "many")
    show(browser, page, 1280, "light")
    link = browser.find_element("css selector", "section > .wide td a")
    link.click()
    assert browser.execute_script("return document.querySelector(':target h3').textContent") == (
        link.text
    )


def test_a_link_opens_the_fold_that_its_task_is_in(browser: Any, pages: list[Path]) -> None:
    (page,) = (page for page in pages if page.stem == "many")
    show(browser, page, 1280, "light")
    (link,) = browser.find_elements("css selector", "tr:nth-child(60) td a")
    name = link.text
    link.click()
    shown = browser.find_element("css selector", "details[open] span:target")
    assert shown.text == name


def test_points_speak_at_the_mouse(browser: Any, pages: list[Path]) -> None:
    (page,) = (page for page in pages if page.stem == "run")
    show(browser, page, 1280, "light")
    titles = "return [...document.querySelectorAll('use > title')].map(t => t.textContent)"
    spoken = browser.execute_script(titles)
    assert sum(title.startswith("trial ") for title in spoken) == 6
