"""Job counts: how many clicks and fields does a job take somebody who begins on their first page?

A click is one on a link, a button or a heading that unfolds; a field is one that is typed, chosen or ticked. Signing in is none of the
job, and neither is looking.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from playwright.sync_api import expect

from tests.e2e.browser import JOB_OF, PATIENCE_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.e2e.browser import Visitor


class Effort(NamedTuple):
    clicks: int = 0
    fields: int = 0

    @property
    def total(self) -> int:
        return self.clicks + self.fields


# What each job took before (counted in the same way with a browser at the commit before 99673d1e), and what it takes now.
EFFORTS: dict[str, tuple[Effort, Effort]] = {
    "review and enable a breaking version": (
        Effort(4, 1),
        Effort(3, 2),
    ),  # one field acknowledges what can break callers
    "approve a held call": (Effort(3, 1), Effort(2, 1)),
    "find why yesterday's call failed from a vague memory": (Effort(3, 1), Effort(3, 1)),
    "upload a tool": (Effort(3, 1), Effort(2, 1)),
    "verify and export evidence for a person": (Effort(11, 4), Effort(5, 2)),
    "invite a person, make an agent with a key and a grant": (Effort(11, 7), Effort(10, 6)),
    "policy from nothing to published": (Effort(12, 1), Effort(10, 2)),
    "emergency stop": (Effort(2, 2), Effort(2, 2)),
    "budget and spending": (Effort(4, 2), Effort(4, 2)),
}


@dataclass
class Count:
    """Does a job in the console of ``visitor`` and counts what it takes."""

    visitor: Visitor
    clicks: int = 0
    fields: int = 0

    @property
    def effort(self) -> Effort:
        return Effort(self.clicks, self.fields)

    @property
    def main(self) -> Locator:
        return self.visitor.page.get_by_role("main")

    def click(self, where: Locator) -> None:
        self.clicks += 1
        where.first.click()
        self.visitor.ready()

    def go(self, page: str) -> None:
        """By the sidebar, and by a tab where the page is not the first of its job."""
        self.clicks += 1
        self.visitor.open_job(JOB_OF.get(page, page))
        if self.main.get_by_role("heading", level=1).inner_text() != page:
            self.tab(page)

    def tab(self, page: str) -> None:
        self.click(self.main.locator("nav.tabs").first.get_by_role("link", name=page, exact=True))
        expect(self.main.get_by_role("heading", level=1)).to_have_text(page, timeout=PATIENCE_MS)

    def link(self, name: str) -> None:
        self.click(self.main.get_by_role("link", name=name))

    def button(self, name: str) -> None:
        self.click(self.main.get_by_role("button", name=name))

    def fill(self, field: str, text: str) -> None:
        self.fields += 1
        self.main.locator(f"[name={field}]").last.fill(text)

    def choose(self, field: str, label: str) -> None:
        self.fields += 1
        self.main.locator(f"select[name={field}]").select_option(label=label)

    def tick(self, field: str, value: str = "") -> None:
        """The only one of its name, where no value is given."""
        self.fields += 1
        self.main.locator(f"[name={field}][value={value}]" if value else f"[name={field}]").check()

    def bring_file(self, field: str, path: Path) -> None:
        self.fields += 1
        self.main.locator(f"[name={field}]").set_input_files(path)


@contextmanager
def counted(job: str, *counts: Count) -> Iterator[None]:
    """What the people of a job did in the block is what the table says, and no more than it took before."""
    yield
    found = Effort(sum(each.clicks for each in counts), sum(each.fields for each in counts))
    before, now = EFFORTS[job]
    assert found == now, f"{job} takes {found}"
    assert now.total <= before.total
