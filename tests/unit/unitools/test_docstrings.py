"""Docstrings: is a docstring of each style told apart into what a tool is for and what its parameters are?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.docstrings import read_docstring

GOOGLE = """Find it.

    Slowly.

    Args:
        q (str): what to find,
            in words

        limit: at most: ten

    Returns:
        All of it.

    Note:
        Kept.
    """
NUMPY = """Find it.

    Slowly.

    Parameters
    ----------
    q : str
        what to find,
        in words
    limit
        at most: ten

    Returns
    -------
    list

    Note
    ----
    Kept.
    """
SPHINX = """Find it.

    Slowly.

    :param str q: what to find,
        in words
    :param limit: at most: ten
    :type limit: int
    :returns: All of it.
    :raises KeyError: never

    Note: Kept.
    """
CHINESE = """查找。

    参数：
        q：要找的词
        limit: 最多

    返回：
        全部
    """


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_each_style_says_the_same(text: str) -> None:
    told = read_docstring(text)

    assert told.parameters == {"q": "what to find, in words", "limit": "at most: ten"}
    assert told.description.startswith("Find it.\n\nSlowly.\n\nNote")
    assert "Kept." in told.description
    for left_out in ("All of it", "list", "KeyError", "Args", "Parameters", "\n\n\n"):
        assert left_out not in told.description


@pytest.mark.req("UNI-2")
def test_chinese_headings_are_read() -> None:
    assert read_docstring(CHINESE) == ("查找。", {"q": "要找的词", "limit": "最多"})


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize(
    ("text", "description"),
    [
        (None, ""),
        ("", ""),
        ("Args:", ""),
        ("Parameters matter here.", "Parameters matter here."),
        ("Return: of the king", "Return: of the king"),
        (":smile: is no field", ":smile: is no field"),
    ],
)
def test_what_is_of_no_style_is_description(text: str | None, description: str) -> None:
    assert read_docstring(text) == (description, {})


@given(st.text(st.sampled_from("aA :：\n\t-*()参数")) | st.text())
def test_no_text_is_too_odd(text: str) -> None:
    told = read_docstring(text)

    assert isinstance(told.description, str)
