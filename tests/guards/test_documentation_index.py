"""Index of the documentation: does it lead to each page, and to each once?"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINKS = Counter(re.findall(r"\]\(([^)#]+)\)", (DOCS / "README.md").read_text("utf-8")))


@pytest.mark.parametrize("folder", ["tutorial", "how-to", "explanation", "reference"])
def test_each_page_is_there_once(folder: str) -> None:
    pages = {f"{folder}/{page.name}" for page in (DOCS / folder).iterdir() if page.is_file()}
    pages |= {f"{folder}/{page.parent.name}/README.md" for page in (DOCS / folder).glob("*/README.md")}

    assert {link: count for link, count in LINKS.items() if link.startswith(f"{folder}/")} == dict.fromkeys(pages, 1)
