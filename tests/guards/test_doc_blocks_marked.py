"""Marks of code blocks: is every code block of the README and the how-tos run or validated, or does it say why it is not?"""

from __future__ import annotations

import re

import pytest

from tests.support.doc_block_schemas import check_means
from tests.support.doc_blocks import (
    ALL,
    DATA,
    ELSEWHERE,
    MARKED_ONLY,
    OUTPUT,
    PAGES,
    PYTHON,
    ROOT,
    SHELL,
    Block,
    check_reads,
)
from tests.support.how_to_follower import blocks_of

# Lower it when one less is marked. Raise it only for what no machine of CI can do.
NOT_RUN_AT_MOST = 23
# What settings there are; and what the command `unitools` reads.
SETTINGS = "".join(
    (ROOT / name).read_text()
    for name in (
        "docs/reference/settings.md",
        "dotenv-sample",
        "unitools/command/push.py",
        "unitools/command/terminal.py",
    )
)


def test_the_pages_have_blocks_to_look_at() -> None:
    assert len(PAGES) > 35
    assert len(ALL) > 80
    assert {block.language for block in ALL} <= {*SHELL, *PYTHON, *DATA, *OUTPUT, *MARKED_ONLY}


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    marked = [block for block in ALL if block.not_run]

    assert len(marked) <= NOT_RUN_AT_MOST, [block.place for block in marked]
    assert [block.place for block in marked if len(block.not_run) < 20] == []


@pytest.mark.parametrize(("page", "section"), ELSEWHERE)
def test_what_another_test_runs_it_does_run(page: str, section: str) -> None:
    """All blocks of the section that say where they are typed."""
    test = ELSEWHERE[page, section]
    program = (ROOT / test).read_text()
    followed = [block.text for block in blocks_of(page, section=section)]
    here = [block for block in ALL if block.page.name == page and block.elsewhere and block.section == section]

    assert f'blocks_of("{page}", section="{section}")' in program
    assert len(followed) == len(here) > 0
    assert all(block.text.endswith(text) for block, text in zip(here, followed, strict=True))


def test_a_test_that_a_block_names_takes_it_from_its_page() -> None:
    named = [block for block in ALL if block.elsewhere and (block.page.name, block.section) not in ELSEWHERE]

    assert named
    assert [block.place for block in named if block.page.name not in (ROOT / block.elsewhere).read_text()] == []


def test_a_fence_that_is_opened_is_closed() -> None:
    fences = {page.name: len(re.findall(r"^ *```", page.read_text(), re.MULTILINE)) for page in PAGES}
    found = {page.name: 2 * sum(block.page == page for block in ALL) for page in PAGES}

    assert found == fences


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_a_block_is_what_it_says_it_is(block: Block) -> None:
    check_reads(block)
    if block.language in DATA:
        check_means(block)
    unknown = {name for name in re.findall(r"\bTOOLHUB_[A-Z_]+\b", block.text) if name not in SETTINGS}
    assert unknown == set()
