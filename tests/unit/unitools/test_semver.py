"""SemVer: are versions ordered as SemVer 2.0.0 says, and do ranges mean what their writers mean?"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.semver import Range, Version, find_newest, find_predecessor

numbers = st.integers(0, 3)
identifiers = st.sampled_from(["0", "1", "2", "10", "alpha", "beta", "rc", "a-b", "1a"])
versions = st.builds(
    Version,
    numbers,
    numbers,
    numbers,
    st.lists(identifiers, max_size=3).map(tuple),
    st.lists(st.sampled_from(["001", "x"]), max_size=2).map(tuple),
)
releases = st.builds(Version, numbers, numbers, numbers)


@pytest.mark.req("TOOLS-6")
@pytest.mark.parametrize(
    "text",
    ["0.0.4", "1.2.3", "10.20.30", "1.1.2-prerelease+meta", "1.0.0-alpha.0valid", "1.0.0-0A.is.legal", "1.0.0-alpha-a.b-c+b.1",
     "1.2.3----RC-SNAPSHOT.12.9.1--.12", "1.0.0+0.build.1-rc.10000aaa-kk-0.1", "99999999999999999999999.999999999999999999.9"],
)  # fmt: skip
def test_a_version_is_read_and_written_back(text: str) -> None:
    assert str(Version.parse(text)) == text


@pytest.mark.req("TOOLS-6")
@pytest.mark.parametrize(
    "text",
    ["", "1", "1.2", "1.2.3.4", "01.1.1", "1.01.1", "1.1.01", "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3+a+b", "v1.2.3",
     " 1.2.3", "1.2.3\n", "1.2.3-é", "1.2.٣", "-1.0.0", "1.0.0-" + "a" * 400, "9" * 5000 + ".0.0"],
)  # fmt: skip
def test_what_is_no_version_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"Write three numbers .* like 1\.4\.2"):
        Version.parse(text)


def test_the_order_is_the_one_in_the_specification() -> None:
    written = [
        "0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
        "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
    ]  # fmt: skip
    parsed = [Version.parse(text) for text in written]

    assert all(a < b and b > a and a != b for a, b in pairwise(parsed))
    assert [str(each) for each in sorted(random.Random(1).sample(parsed, len(parsed)))] == written


@given(versions, versions, versions)
def test_the_order_is_total(a: Version, b: Version, c: Version) -> None:
    assert (a < b) + (a == b) + (a > b) == 1
    assert not (a <= b <= c) or a <= c
    assert (a == b) <= (hash(a) == hash(b))


@given(versions)
def test_writing_and_reading_a_version_changes_nothing(version: Version) -> None:
    again = Version.parse(str(version))

    assert again == version
    assert str(again) == str(version)


def test_build_metadata_does_not_make_a_version_newer() -> None:
    a, b = Version.parse("1.0.0+a"), Version.parse("1.0.0+b")

    assert a == b
    assert not a < b
    assert len({a, b}) == 1


HOLDS = {
    "*": ("0.0.0 1.2.3 99.0.0", "1.0.0-rc.1"),
    "x": ("0.0.0 1.2.3", "1.0.0-rc.1"),
    "1.2.3": ("1.2.3 1.2.3+build", "1.2.4 1.2.3-rc.1"),
    "=1.2.3": ("1.2.3", "1.2.2"),
    "1": ("1.0.0 1.9.9", "0.9.9 2.0.0 2.0.0-rc.1"),
    "1.x": ("1.0.0 1.9.9", "0.9.9 2.0.0"),
    "1.2.*": ("1.2.0 1.2.9", "1.3.0 1.1.9"),
    "^1.2": ("1.2.0 1.9.0", "1.1.9 2.0.0 2.0.0-rc.1 1.3.0-rc.1"),
    "^1.2.3": ("1.2.3 1.2.4 1.3.0", "1.2.2 2.0.0"),
    "^0.2.3": ("0.2.3 0.2.9", "0.3.0 0.2.2 1.0.0"),
    "^0.2": ("0.2.0 0.2.9", "0.3.0 0.1.9"),
    "^0.0.3": ("0.0.3", "0.0.4 0.0.2"),
    "^0.0": ("0.0.0 0.0.9", "0.1.0"),
    "^0": ("0.0.0 0.9.9", "1.0.0"),
    "^1.2.3-beta.2": ("1.2.3-beta.2 1.2.3-beta.10 1.2.3 1.9.0", "1.2.3-beta.1 1.2.4-beta.2 2.0.0"),
    "~1.2.3": ("1.2.3 1.2.9", "1.3.0 1.2.2"),
    "~1.2": ("1.2.0 1.2.9", "1.3.0 1.1.9"),
    "~1": ("1.0.0 1.9.9", "2.0.0 0.9.9"),
    "~0.2.3": ("0.2.3 0.2.9", "0.3.0"),
    ">=1.2, <2": ("1.2.0 1.9.9", "1.1.9 2.0.0"),
    ">=1.2 <2": ("1.2.0 1.9.9", "1.1.9 2.0.0"),
    ">= 1.2.0 , < 2.0.0": ("1.2.0 1.9.9", "2.0.0"),
    ">1.2": ("1.3.0 2.0.0", "1.2.9 1.2.0"),
    "<=1.2": ("1.2.9 0.1.0", "1.3.0 1.3.0-rc.1"),
    "<1.2": ("1.1.9", "1.2.0 1.2.0-rc.1"),
    ">1.2.3": ("1.2.4 2.0.0", "1.2.3"),
    "<=1.2.3": ("1.2.3 0.0.1", "1.2.4"),
    "1.x || 3.x": ("1.5.0 3.0.1", "2.0.0 4.0.0"),
    ">=0.1": ("0.1.0 7.0.0", "0.0.9"),
    ">=1.2.3-rc.1": ("1.2.3-rc.2 1.2.3 1.2.4", "1.2.4-rc.1 1.2.3-rc.0 1.2.3-alpha"),
    "^1.2 >=2.0.0-a": ("", "2.0.0-b 1.9.0"),
    "^1.2.3-rc.1 || ^2": ("1.2.3-rc.1 2.1.0", "2.0.0-rc.1"),
    "<*": ("", "0.0.0 0.0.0-a 1.0.0"),
    "<0.0.0": ("", "0.0.0 1.0.0"),
}  # fmt: skip


@pytest.mark.req("TOOLS-6")
@pytest.mark.parametrize("text", HOLDS)
def test_a_range_means_these_versions_and_not_those(text: str) -> None:
    inside, outside = HOLDS[text]
    wanted = Range.parse(text)

    assert [each for each in inside.split() if each not in wanted] == []
    assert [each for each in outside.split() if Version.parse(each) in wanted] == []


@pytest.mark.parametrize(
    "text",
    ["", "  ", "latest", "1.2.3.4", "1.x.3", "x.1", ">=", ">=1.2<2", "1.2 -", "1.2 - 2.0", "^^1", "1 ||", "|| 1", "1,,2", ">=1.2,",
     "01.2.3", "1.x-rc.1", "1.2.x-rc.1", "^v1", "1" * 2000],
)  # fmt: skip
def test_what_is_no_range_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="Write"):
        Range.parse(text)


def test_what_is_no_version_is_in_no_range() -> None:
    assert 1.2 not in Range.parse("*")
    with pytest.raises(ValueError, match="not a version"):
        assert "soon" in Range.parse("*")


@given(releases, releases)
def test_a_caret_never_leaves_the_first_number_that_is_not_nought(low: Version, other: Version) -> None:
    leading = low.triple[: next((place + 1 for place, number in enumerate(low.triple) if number), 3)]

    assert (other in Range.parse(f"^{low}")) == (other >= low and other.triple[: len(leading)] == leading)


@given(releases, releases)
def test_a_tilde_moves_the_last_number_only(low: Version, other: Version) -> None:
    assert (other in Range.parse(f"~{low}")) == (other >= low and other.triple[:2] == low.triple[:2])


@given(versions, versions)
def test_a_prerelease_is_meant_only_by_its_own_triple(bound: Version, version: Version) -> None:
    meant = version in Range.parse(f">={bound}")

    assert meant == (
        version >= bound and (not version.prerelease or (bool(bound.prerelease) and version.triple == bound.triple))
    )


@given(st.lists(versions, max_size=8))
def test_the_newest_is_a_release_that_none_is_above(given_versions: list[Version]) -> None:
    found = find_newest(given_versions, "*")
    among = [each for each in given_versions if not each.prerelease]

    assert found == max(among, default=None)


def test_the_newest_is_given_back_as_it_was_given() -> None:
    assert find_newest(["1.2.0", "1.10.0+b", "2.0.0-rc.1"], Range.parse("*")) == "1.10.0+b"
    assert find_newest(["1.2.0", "2.0.0"], "^3") is None
    assert find_newest([Version(1, 0, 0)], "1") == Version(1, 0, 0)


def test_a_version_is_compared_with_the_newest_release_before_it() -> None:
    known = ["1.2.3", "1.2.9", "1.3.0-rc.1", "2.0.0", "1.0.0"]

    assert find_predecessor(known, "1.2.4") == "1.2.3"
    assert find_predecessor(known, "1.3.0") == "1.2.9"
    assert find_predecessor(known, "3.0.0") == "2.0.0"
    assert find_predecessor(known, "1.0.0") is None
    assert find_predecessor(["1.0.0-a", "1.0.0-b"], "1.0.0") == "1.0.0-b"
