"""Long lists: what the longest pages that a person can get cost a browser, to be drawn and to be scrolled through.

``python -m bench.long_lists`` measures this alone, in an embedded hub with the demonstration. It needs Chromium
(``TOOLHUB_TEST_CHROMIUM``). How long it worked until the page was ready is the browser's own count; frames are those of a wheel that
is turned through the whole page, and a frame that took longer than 50 ms is one that somebody sees.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure, judge_figure, print_table, run_part
from bench.hubs import run_embedded_hub, run_python
from bench.pages import FLAGS, enter

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, CDPSession

FRAME_MS = 50
STEPS, STEP_PX = 60, 400
COUNTED = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration")
FRAMES = """() => { window.frames_ms = []; let last = performance.now();
    const next = (now) => { window.frames_ms.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame(next); }"""


@dataclass(frozen=True, slots=True)
class LongPage:
    """Milliseconds. ``frames``: of the scroll, sorted."""

    path: str
    elements: int
    rows: int
    spent: dict[str, float]
    frames: list[float]

    @property
    def slow(self) -> int:
        return sum(each > FRAME_MS for each in self.frames)

    @property
    def p95(self) -> float:
        return self.frames[int(len(self.frames) * 0.95)]


def read_spent(wire: CDPSession) -> dict[str, float]:
    found = {each["name"]: each["value"] * 1000 for each in wire.send("Performance.getMetrics")["metrics"]}
    return {name: found[name] for name in COUNTED}


def measure_page(context: BrowserContext, url: str, path: str) -> LongPage:
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Performance.enable")
    page.goto(url + path)
    page.wait_for_selector("html[data-ready]", state="attached")
    spent = read_spent(wire)
    elements, rows = page.evaluate(
        "[document.querySelectorAll('*').length, document.querySelectorAll('main tr, main .field').length]"
    )
    page.evaluate(FRAMES)
    page.mouse.move(700, 500)
    for _ in range(STEPS):
        page.mouse.wheel(0, STEP_PX)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    frames = sorted(page.evaluate("window.frames_ms"))
    page.close()
    return LongPage(path, elements, rows, spent, frames)


def measure() -> list[list[str]]:
    try:
        from playwright.sync_api import Error, sync_playwright  # noqa: PLC0415  the bench runs without it
    except ImportError as error:
        raise CannotMeasure("Playwright is not installed; `make bench` installs it.") from error
    with run_embedded_hub() as (url, env, _), sync_playwright() as playwright:
        (session,) = json.loads(run_python(env, "-m", "bench.session_setup", "1").splitlines()[-1])
        paths = json.loads(run_python(env, "-m", "bench.long_list_setup").splitlines()[-1])
        try:
            browser = playwright.chromium.launch(
                executable_path=os.environ.get("TOOLHUB_TEST_CHROMIUM", "/usr/bin/chromium"), args=FLAGS
            )
        except Error as error:
            raise CannotMeasure(f"Chromium did not start: {error}") from error
        context = enter(browser, url, session)
        found = [measure_page(context, url, path) for path in ["/", *paths]]
        browser.close()
    return judge_long_pages(found)


def judge_long_pages(found: list[LongPage]) -> list[list[str]]:
    print_table(
        "The longest pages, in a browser",
        (
            "page",
            "elements",
            "rows",
            "scripts, ms",
            "style, ms",
            "layout, ms",
            "all work, ms",
            "frame p95",
            "over 50 ms",
        ),
        [
            [
                each.path,
                f"{each.elements:,}",
                f"{each.rows:,}",
                f"{each.spent['ScriptDuration']:.0f}",
                f"{each.spent['RecalcStyleDuration']:.0f}",
                f"{each.spent['LayoutDuration']:.0f}",
                f"{each.spent['TaskDuration']:.0f}",
                f"{each.p95:.0f} ms",
                f"{each.slow} of {len(each.frames)}",
            ]
            for each in found
        ],
    )
    worst = max(found, key=lambda each: each.p95)
    return [
        judge_figure(
            f"frames while the longest lists are scrolled, p95 ≤ {FRAME_MS} ms",
            f"{worst.p95:.0f} ms",
            reached=worst.p95 <= FRAME_MS,
        )
    ]


if __name__ == "__main__":
    sys.exit(run_part(measure))
