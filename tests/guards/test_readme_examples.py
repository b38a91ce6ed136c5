"""README examples: is each program that it shows a file that is type-checked with everything else?"""

from __future__ import annotations

import pytest

from tests.support.doc_blocks import ALL, PYTHON, ROOT

EXAMPLES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "examples").glob("*.py"))}
SHOWN = {block.place: block.text for block in ALL if block.page.name == "README.md" and block.language in PYTHON}


@pytest.mark.parametrize("place", SHOWN)
def test_a_program_of_the_readme_is_one_of_the_examples(place: str) -> None:
    """`make check` reads docs/examples with `mypy --strict`."""
    assert SHOWN[place] in EXAMPLES.values()


def test_each_example_is_shown() -> None:
    assert set(EXAMPLES.values()) == set(SHOWN.values())
