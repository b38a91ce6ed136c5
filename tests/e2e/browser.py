"""A real browser: how does a test look at a page as a person with a real browser does, and what must hold on every page?"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pytest
from django.utils import translation
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE = "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations'], preload: false})"
HAS_AXE = "typeof axe === 'object'"
KEEPS_SHOTS = "TOOLHUB_TEST_SHOTS" in os.environ
# Pages that are tabs, by the entry of the sidebar that leads to them.
JOB_OF = {
    "Explain a call": "Invocations",
    "Kill switches": "Stops and health",
    "Models": "Catalogue",
    "Model providers": "Catalogue",
    "My submissions": "Build tools",
    "Bring a tool": "Build tools",
    "Submit a version": "Build tools",
    "Playground": "Build tools",
    "Facts": "Evidence",
    "Integrity": "Evidence",
    "Exports": "Evidence",
    "Agents & keys": "Agents and grants",
    "Grants": "Agents and grants",
    "Budgets": "Budgets and spending",
    "Spending": "Budgets and spending",
    "Model prices": "Budgets and spending",
    "People": "People and settings",
}
LISTEN = """
    window.violations = [];
    document.addEventListener('securitypolicyviolation', e => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
LOOK = """() => ({
    violations: window.violations ?? [],
    styles: [...document.querySelectorAll('[style]')].map(e => e.outerHTML.slice(0, 200)),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    language: document.documentElement.lang,
    keys: [...document.querySelectorAll('.sc-dot, .legend li')].filter(e =>
        getComputedStyle(e, e.matches('.sc-dot') ? null : '::before').forcedColorAdjust !== 'none'
    ).map(e => e.parentElement.textContent.trim()),
})"""


@dataclass(frozen=True, slots=True)
class Variant:
    """In which way somebody looks at the console."""

    name: str
    language: str = "en"
    dark: bool = False
    width: int = 1280
    height: int = 900
    scripts: bool = True
    forced_colours: bool = False

    def say(self, text: str) -> str:
        """A label, as this person reads it."""
        with translation.override(self.language):
            return translation.gettext(text)


SEEN_SELDOM = pytest.mark.long  # `make test` looks in Chinese and dark, and in English and light where no scripts run
in_each_variant = pytest.mark.parametrize(
    "variant",
    [
        pytest.param(Variant("light"), marks=SEEN_SELDOM),
        Variant("chinese-dark", language="zh-hans", dark=True),
        pytest.param(Variant("narrow", width=390, height=844), marks=SEEN_SELDOM),
        Variant("without-scripts", scripts=False),
    ],
    ids=lambda variant: variant.name,
)


def chromium() -> Iterator[Browser]:
    """A browser with a new profile. It must end before tests that use the ORM: it keeps an event loop in this thread."""
    path = os.environ.get("TOOLHUB_TEST_CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=2 * PATIENCE_MS)
        yield browser
        browser.close()


@dataclass  # without slots: Playwright keeps things on whoever listens
class Visitor:
    """Somebody at the console, with a browser of their own."""

    browser: Browser
    url: str
    variant: Variant
    shots: Path
    name: str = ""
    errors: list[str] = field(default_factory=list)
    sign_ins_seen: ClassVar[set[Variant]] = set()  # everybody comes by that page: it is looked at once in each way
    _context: BrowserContext | None = None
    _page: Page | None = None

    def __enter__(self) -> Self:
        variant = self.variant
        self._context = self.browser.new_context(
            viewport={"width": variant.width, "height": variant.height},
            color_scheme="dark" if variant.dark else "light",
            locale="zh-CN" if variant.language == "zh-hans" else "en-GB",
            java_script_enabled=variant.scripts,
            reduced_motion="reduce",
            forced_colors="active" if variant.forced_colours else "none",
        )
        self._context.set_default_timeout(PATIENCE_MS)
        self._page = self._context.new_page()
        self._page.on("console", self._hear)
        self._page.on("pageerror", lambda error: self.errors.append(str(error)))
        if variant.scripts:
            self._page.add_init_script(LISTEN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._context
        self._context.close()

    def _hear(self, message: ConsoleMessage) -> None:
        # The status of a page that is refused or not found is also an error on the browser's console.
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.errors.append(message.text)

    @property
    def page(self) -> Page:
        assert self._page
        return self._page

    def look_as(self, variant: Variant) -> None:
        """At the page that is open, in another way that needs no new one: its language and its scripts stay."""
        assert (variant.language, variant.scripts) == (self.variant.language, self.variant.scripts)
        self.variant = variant
        self.page.emulate_media(
            color_scheme="dark" if variant.dark else "light",
            forced_colors="active" if variant.forced_colours else "none",
        )
        self.page.set_viewport_size({"width": variant.width, "height": variant.height})

    def label(self, text: str, within: Locator | None = None) -> Locator:
        return (within or self.page.get_by_role("main")).get_by_label(self.variant.say(text))

    def button(self, text: str, within: Locator | None = None) -> Locator:
        return (within or self.page.get_by_role("main")).get_by_role("button", name=self.variant.say(text), exact=True)

    def sees(self, text: str) -> None:
        """These words are there to be read, in the person's language."""
        expect(self.page.get_by_role("main").get_by_text(self.variant.say(text)).first).to_be_visible(
            timeout=PATIENCE_MS
        )

    def sign_in(self, name: str, password: str) -> None:
        self.name = name
        self.page.goto(f"{self.url}/sign-in")
        self.ready()
        look = replace(self.variant, name="")
        if look not in self.sign_ins_seen:
            self.check("sign-in")
            self.sign_ins_seen.add(look)
        self.label("Username").fill(name)
        self.label("Password").fill(password)
        self.button("Sign in").click()
        expect(self.page.get_by_role("heading", name=self.variant.say("Sign in"))).to_have_count(0, timeout=PATIENCE_MS)
        self.ready()

    def ready(self) -> None:
        self.page.wait_for_load_state("load")
        if self.variant.scripts:
            self.page.wait_for_selector("html[data-ready]", state="attached")
            expect(self.page.locator(".htmx-request")).to_have_count(0, timeout=PATIENCE_MS)  # what is asked is dimmed

    def go(self, page: str) -> None:
        """Open a page by the sidebar, which is behind a menu on a narrow screen, and by the tabs of its job."""
        self.open_job(JOB_OF.get(page, page))
        tabs = self.page.get_by_role("main").locator("nav.tabs").first
        if page in JOB_OF:
            tab = tabs.get_by_role("link", name=self.variant.say(page), exact=True)
            if tab.get_attribute("aria-current") is None:
                tab.click()
                self.page.wait_for_load_state("load")
        heading = self.page.get_by_role("heading", level=1, name=self.variant.say(page))
        expect(heading).to_be_visible(timeout=PATIENCE_MS)
        self.ready()

    def open_job(self, job: str) -> None:
        side = self.page.get_by_role("navigation", name=self.variant.say("Main"), exact=True)
        if not side.is_visible():
            menu = self.variant.say("Menu")
            self.page.locator("summary").and_(self.page.get_by_label(menu, exact=True)).click()
            side = self.page.get_by_role("navigation", name=menu, exact=True)
        side.get_by_role("link", name=self.variant.say(job)).click()
        self.page.wait_for_load_state("load")
        self.ready()

    def follow(self, link: str, *, shows: str = "") -> None:
        """Follow a link of the page's content; ``shows`` is in the heading of where it leads."""
        self.page.get_by_role("main").get_by_role("link", name=self.variant.say(link), exact=True).first.click()
        heading = self.page.get_by_role("heading", level=1).filter(has_text=self.variant.say(shows or link))
        expect(heading).to_be_visible(timeout=PATIENCE_MS)
        self.ready()

    def check(self, name: str) -> None:
        """What must hold on every page; keeps a picture of it where they are wanted, and of a page that is wrong."""
        if KEEPS_SHOTS:
            self._keep_shot(name)
        found = self.page.evaluate(LOOK)
        wrong: dict[str, Any] = {
            "console errors": self.errors,
            "CSP violations": found["violations"],
            "style attributes": found["styles"],
            "pixels too wide": max(0, found["overflow"]),
            "keys of a chart that forced colours would empty": found["keys"],
        }
        if self.variant.scripts:
            wrong["axe"] = self._axe()
        wrong = {what: value for what, value in wrong.items() if value}
        if wrong:
            self._keep_shot(name)
        assert not wrong, f"{name} ({self.variant.name}, {self.page.url}): {wrong}"
        assert found["language"] == {"en": "en", "zh-hans": "zh-Hans"}[self.variant.language]

    def _keep_shot(self, name: str) -> None:
        # Hiding the caret would write style attributes into the page.
        shot = self.shots / f"{self.variant.name}-{name}.png"
        self.page.screenshot(path=shot, full_page=True, caret="initial")

    def _axe(self) -> list[str]:
        self.page.evaluate("scrollTo(0, 0)")  # what lies half under the bar at the top counts as too small
        if not self.page.evaluate(HAS_AXE):
            self.page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text())
        result = self.page.evaluate(AXE, TAGS)
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:160] for node in each['nodes'][:3]]}"
            for each in result["violations"]
        ]
