"""Templates: can a person review the templates?"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

from tests.support.templates import TEMPLATES, name_of
from toolhub.packages import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
BLOCK_TAG = re.compile(r"@register\.(?:simple_block_tag\ndef |tag\(\")(\w+)")
# A sentence, or what an include is given: one tag is one line.
OWN_LINE = re.compile(r" *{% (?:trans|blocktrans|include) .*%}")
LONGEST = 160
TOO_LONG = {  # an attribute or inline content that cannot be broken without a space that shows
    "base.html",
    "budgets/budget_detail.html",
    "components/stacked_chart.html",
    "components/waterfall.html",
    "consents/dry_run.html",
    "grants/terms_fields.html",
    "versions/version_changes.html",
}


def test_the_formatter_knows_every_block_tag() -> None:
    modules = [path for package in ("kernel", *PACKAGES) for path in (ROOT / package).rglob("templatetags/*.py")]
    found = {tag for path in modules for tag in BLOCK_TAG.findall(path.read_text())}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["djlint"]

    assert found
    assert set(settings["custom_blocks"].split(",")) == found | {"partialdef"}


def test_every_template_has_a_name_of_its_own() -> None:
    """Of two, Django takes the first that it finds: a template lies in a folder named like its noun."""
    names = Counter(name_of(path) for path in TEMPLATES)

    assert len(names) > 150
    assert [name for name, count in names.items() if count > 1] == []


def test_lines_of_templates_can_be_read() -> None:
    long = {
        name_of(path)
        for path in TEMPLATES
        for line in path.read_text().splitlines()
        if len(line) > LONGEST and not OWN_LINE.fullmatch(line)
    }

    assert long == TOO_LONG


def test_a_link_that_fills_its_row_fills_nothing_else() -> None:
    """Outside of a row (`rl`) it would lie over the whole page, and every click would follow it."""
    styles = "\n".join(path.read_text() for path in (ROOT / "frontend" / "css").glob("*.css"))
    selectors = re.findall(r"[^{}]*\.hit[^{}:]*::?[^{}]*(?=\{)", styles)

    assert selectors
    assert [each.strip() for each in selectors if ".rl" not in each] == []
