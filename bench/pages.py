"""Pages: what each page of the console weighs on the wire, the first time and later, and when a browser has painted something of it.

``python -m bench.pages`` measures this alone, in an embedded hub with the demonstration and a call. It needs Chromium
(``TOOLHUB_TEST_CHROMIUM``). Bytes are those of the answers with their headers; the limits of each page are also a test
(``tests/integration/console/test_every_page.py``), since they are the same on every machine.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.figures import CannotMeasure, judge_figure, print_table, run_part
from bench.hubs import run_embedded_hub, run_python
from bench.page_streams import call_tool

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

FIRST_KB, LATER_KB, PAINT_MS = 150, 40, 300
LINK = r"""[...document.querySelectorAll('#side a')].map(each => each.getAttribute('href'))"""
ROW = r"""document.querySelector('main tbody a[href^="/"]')?.getAttribute('href') ?? ''"""
# As a promise, and not by waiting for an expression: that would be evaluated by the page, whose policy forbids it.
PAINT = """() => new Promise(done => new PerformanceObserver(list => {
    const [first] = list.getEntriesByName('first-contentful-paint');
    if (first) done(first.startTime);
}).observe({type: 'paint', buffered: true}))"""
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu"]


@dataclass(frozen=True, slots=True)
class Load:
    """One load of one page."""

    bytes: int
    paint_ms: float


def load_page(context: BrowserContext, url: str) -> Load:
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    sizes: list[float] = []
    wire.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(url)
    page.wait_for_selector("html[data-ready]", state="attached")
    paint_ms = page.evaluate(PAINT)
    found = Load(round(sum(sizes)), paint_ms)
    page.close()
    return found


def enter(browser: Browser, url: str, session: str) -> BrowserContext:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
    return context


def list_paths(browser: Browser, url: str, session: str) -> list[str]:
    """The entries of the navigation, and of each list the page of its first row."""
    context = enter(browser, url, session)
    page = context.new_page()
    page.goto(url)
    sections: list[str] = page.evaluate(LINK)
    rows = []
    for path in sections:
        page.goto(url + path)
        rows.append(page.evaluate(ROW))
    context.close()
    return list(dict.fromkeys(each for each in [*sections, *rows] if each))


def measure() -> list[list[str]]:
    try:
        from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415  the bench runs without it
    except ImportError as error:
        raise CannotMeasure("Playwright is not installed; `make bench` installs it.") from error
    with run_embedded_hub() as (url, env, _), sync_playwright() as playwright:
        (session,) = json.loads(run_python(env, "-m", "bench.session_setup", "1").splitlines()[-1])
        call_tool(url, json.loads(Path(env["TOOLHUB_DATA_DIR"], "demo-credentials.json").read_text())["api_key"])
        try:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("TOOLHUB_TEST_CHROMIUM", "/usr/bin/chromium"), args=FLAGS
            )
        except Error as error:
            raise CannotMeasure(f"Chromium did not start: {error}") from error
        found: dict[str, tuple[Load, Load]] = {}
        for path in list_paths(browser, url, session):
            context = enter(browser, url, session)
            first = load_page(context, url + path)
            found[path] = (first, load_page(context, url + path))
            context.close()
        browser.close()
    return judge_pages(found)


def judge_pages(found: dict[str, tuple[Load, Load]]) -> list[list[str]]:
    """Paints are judged by the half of all pages: one of them waits now and then for what else the machine does."""
    print_table(
        "Pages of the console, over the wire",
        ("page", "first, kB", "later, kB", "first paint, ms", "later, ms"),
        [
            [
                _shorten(path),
                *(f"{each.bytes / 1000:.1f}" for each in loads),
                *(f"{each.paint_ms:.0f}" for each in loads),
            ]
            for path, loads in found.items()
        ],
    )
    first, later = (max(loads[at].bytes for loads in found.values()) / 1000 for at in (0, 1))
    paints = sorted(each.paint_ms for loads in found.values() for each in loads)
    half: Any = paints[len(paints) // 2]
    return [
        judge_figure(f"first load of every page ≤ {FIRST_KB} kB", f"{first:.1f} kB", reached=first <= FIRST_KB),
        judge_figure(f"later loads of every page ≤ {LATER_KB} kB", f"{later:.1f} kB", reached=later <= LATER_KB),
        judge_figure(f"first paint of a page, p50 ≤ {PAINT_MS} ms", f"{half:.0f} ms", reached=half <= PAINT_MS),
    ]


def _shorten(path: str) -> str:
    return re.sub(r"_[0-9a-z]{26}", "_…", path)


if __name__ == "__main__":
    sys.exit(run_part(measure))
