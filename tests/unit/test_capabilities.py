"""Is the intersection of capabilities one that nobody can trick into giving more?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.capabilities import Capabilities, explain

paths = st.lists(st.sampled_from(["a", "b", "ab", "data"]), max_size=3).map(lambda parts: "/" + "/".join(parts))
hosts = st.builds(
    lambda star, labels: star + ".".join([*labels, "org"]),
    st.sampled_from(["", "*."]),
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2),
)
values = st.builds(
    lambda fs, net, proc, browser, tmp: Capabilities(fs, net, proc, browser, tmp).normal(),
    st.frozensets(st.tuples(paths, st.sampled_from(["read", "write"])), max_size=4),
    st.frozensets(st.tuples(st.just("https"), hosts, st.sampled_from([443, 8443])), max_size=4),
    st.frozensets(st.sampled_from(["/bin/a", "/bin/b"])),
    st.booleans(),
    st.integers(0, 3),
)


@pytest.mark.req("TOOLS-16")
@given(values, values)
def test_the_intersection_does_not_depend_on_the_order(a: Capabilities, b: Capabilities) -> None:
    assert a & b == b & a


@pytest.mark.req("TOOLS-16")
@given(values, values, values)
def test_the_intersection_does_not_depend_on_the_grouping(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    assert (a & b) & c == a & (b & c)


@given(values)
def test_a_set_with_itself_is_itself(a: Capabilities) -> None:
    assert a & a == a
    assert a.normal() == a


@given(values)
def test_nothing_stays_nothing(a: Capabilities) -> None:
    assert a & Capabilities() == Capabilities()
    assert Capabilities() <= a


@pytest.mark.req("TOOLS-16")
@given(values, values)
def test_the_intersection_is_within_both(a: Capabilities, b: Capabilities) -> None:
    assert a & b <= a
    assert a & b <= b


@given(values, values, values)
def test_who_narrows_one_side_never_widens_the_result(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    assert (a & b) & c <= a & c


@given(values, values)
def test_what_is_within_both_ways_is_equal(a: Capabilities, b: Capabilities) -> None:
    assert (a <= b and b <= a) == (a == b)


@given(values, values)
def test_an_explanation_names_exactly_what_was_dropped(a: Capabilities, b: Capabilities) -> None:
    dropped = {each["capability"] for each in explain(a, policy=b)}

    assert dropped == set(a.names()) - set((a & b).names())
    assert explain(a, policy=None) == []


def net(host: str) -> Capabilities:
    return Capabilities.from_json({"net": [{"host": host}]})


@pytest.mark.parametrize(
    ("asked", "bound", "within"),
    [
        ("a.example.org", "*.example.org", True),
        ("x.a.example.org", "*.example.org", True),
        ("*.a.example.org", "*.example.org", True),
        ("*.example.org", "*.example.org", True),
        ("example.org", "*.example.org", False),
        ("evilexample.org", "*.example.org", False),
        ("*.evilexample.org", "*.example.org", False),
        ("*.org", "*.example.org", False),
        ("*.example.org", "example.org", False),
    ],
)
def test_a_wildcard_holds_strict_subdomains_only(asked: str, bound: str, within: bool) -> None:
    assert (net(asked) <= net(bound)) is within


def tree(path: str, action: str = "read") -> Capabilities:
    return Capabilities.from_json({"fs": [{"path": path, "actions": [action]}]})


def test_trees_meet_in_the_smaller_one_and_by_whole_names() -> None:
    assert tree("/data") & tree("/data/in") == tree("/data/in")
    assert tree("/data") & tree("/database") == Capabilities()
    assert tree("/data") & tree("/data", "write") == Capabilities()
    assert tree("/data/") == tree("/data")


@pytest.mark.parametrize("path", ["relative", "/a/../b", "..", "//host/share", "/a\0b", ""])
def test_paths_that_are_not_plain_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="absolute"):
        tree(path)
