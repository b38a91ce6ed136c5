"""Change versions: which numbers may a version have after which changes?"""

from __future__ import annotations

import pytest

from tests.support.manifests import manifest
from unitools.changes import compare_manifests, compute_given_bump, find_offending_changes

FS = {"fs": [{"path": "/data", "actions": ["read"]}]}


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize(
    ("old", "new", "given"),
    [
        ("1.2.3", "2.0.0", "major"), ("1.2.3", "1.3.0", "minor"), ("1.2.3", "1.2.4", "patch"), ("1.2.3", "1.2.3", "none"),
        ("1.2.3", "1.2.2", "none"), ("2.0.0", "1.9.9", "none"), ("1.2.3+a", "1.2.3+b", "none"),
        ("0.2.3", "0.3.0", "major"), ("0.2.3", "0.2.4", "patch"), ("0.9.0", "1.0.0", "major"), ("0.0.1", "0.0.2", "patch"),
        ("1.9.0", "2.0.0-rc.1", "major"), ("2.0.0-rc.1", "2.0.0-rc.2", "major"), ("2.0.0-rc.1", "2.0.0", "major"),
        ("1.3.0-rc.1", "1.3.0", "minor"), ("1.3.1-rc.1", "1.3.1", "patch"), ("1.3.0-rc.1", "1.3.1", "patch"),
        ("0.3.0-rc.1", "0.3.0", "major"), ("2.0.0", "2.0.0-rc.1", "none"),
    ],
)  # fmt: skip
def test_the_numbers_allow_what_semver_says(old: str, new: str, given: str) -> None:
    assert compute_given_bump(old, new) == given


@pytest.mark.req("TOOLS-9")
def test_the_refusal_names_each_change_that_needs_more() -> None:
    changes = compare_manifests(
        manifest(), manifest() | {"ttl_seconds": 3, "capabilities": FS, "timeout_ms": 1000, "async": True}
    )

    assert [each.kind for each in find_offending_changes("1.0.0", "1.0.1", changes)] == [
        "capabilities.added",
        "async.changed",
        "timeout.lowered",
        "ttl.added",
    ]
    assert [each.kind for each in find_offending_changes("1.0.0", "1.1.0", changes)] == [
        "capabilities.added",
        "async.changed",
    ]
    assert find_offending_changes("1.0.0", "2.0.0", changes) == []


@pytest.mark.req("TOOLS-9")
def test_a_version_that_is_not_newer_offends_by_itself() -> None:
    (only,) = find_offending_changes("1.1.0", "1.1.0+again", [])

    assert (only.kind, only.pointer, only.before, only.after) == (
        "version.not_increased",
        "/version",
        "1.1.0",
        "1.1.0+again",
    )


def test_what_is_no_version_is_said_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="is not a version"):
        find_offending_changes("1.0", "1.1.0", [])
