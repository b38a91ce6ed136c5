"""UI diff: does the manifest diff show what changed, and nothing that only looks changed?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel.components.diffs import MAX_LINES, diff_documents, diff_lines, draw_invisible

LINES = st.lists(st.text(alphabet="ab {},<\u200b", max_size=6), max_size=12)


def test_the_same_document_has_no_diff() -> None:
    diff = diff_documents({"a": 1}, {"a": 1})

    assert not diff
    assert diff.lines == ()


def test_a_new_document_is_all_added() -> None:
    diff = diff_documents(None, {"a": 1})

    assert (diff.added, diff.removed) == (3, 0)


def test_a_trailing_comma_is_not_a_change() -> None:
    assert diff_documents({"a": 1}, {"a": 1, "b": 2}).removed == 0


def test_changed_words_are_marked() -> None:
    diff = diff_documents({"text": "at most 500 rows per call"}, {"text": "at most 2000 rows per call"})

    changed = [line.text for line in diff.lines if line.kind in ("add", "delete")]
    assert "<mark>500</mark>" in changed[0]
    assert "<mark>2000</mark>" in changed[1]


def test_lines_without_likeness_are_not_marked() -> None:
    diff = diff_lines(["entirely different"], ["0xdeadbeef"])

    assert not any("<mark>" in line.text for line in diff.lines)


def test_invisible_characters_become_chips_that_name_them() -> None:
    html = draw_invisible("a\u200b\U000e0053<b>")

    assert 'title="ZERO WIDTH SPACE">U+200B<' in html
    assert ">U+E0053<" in html
    assert "&lt;b&gt;" in html


def test_ordinary_text_has_no_chips() -> None:
    text = "Export contacts — 导出 «é»\n\t"
    assert draw_invisible(text) == text


def test_long_unchanged_parts_become_a_gap() -> None:
    old = [str(n) for n in range(100)]

    diff = diff_lines(old, [*old[:50], "new", *old[50:]])

    assert [line.hidden for line in diff.lines if line.kind == "gap"] == [47, 47]


def test_a_huge_diff_is_cut_and_says_so() -> None:
    diff = diff_lines([], [str(n) for n in range(MAX_LINES + 5)])

    assert diff.truncated
    assert len(diff.lines) == MAX_LINES
    assert diff.added == MAX_LINES + 5


@given(LINES, LINES)
def test_every_line_of_both_sides_is_shown_or_counted(old: list[str], new: list[str]) -> None:
    diff = diff_lines(old, new)

    if diff.lines:
        hidden = sum(line.hidden for line in diff.lines)
        assert sum(line.old is not None for line in diff.lines) + hidden == len(old)
        assert sum(line.new is not None for line in diff.lines) + hidden == len(new)
        assert not any("\u200b" in line.text for line in diff.lines)
    else:
        assert [line.rstrip(",") for line in old] == [line.rstrip(",") for line in new]
