"""Manifest validation: does the small judge of manifests say what a full implementation says?"""

from __future__ import annotations

import jsonschema

from tests.mistakes import MISTAKES, SHAPES
from tests.support.manifests import manifest
from unitools.manifest import manifest_schema
from unitools.manifest_validation import validate_manifest

JUDGE = jsonschema.Draft202012Validator(manifest_schema())
DOCUMENTS = [
    *(
        manifest(**(changes or {}))
        for each in MISTAKES.values()
        for mistake in each
        for changes in (mistake.wrong, mistake.right)
    ),
    *(manifest(**changes) for changes, _, _ in SHAPES.values()),
    manifest(version=1),
    manifest(id="a.b"),
    manifest(version="1.0"),
    manifest(tags="sample"),
    manifest(tags=["a", "a"]),
    manifest(timeout_ms=True),
    manifest(timeout_ms=1),
    manifest(more=1),
    manifest(description=""),
    manifest(implementation={}),
    manifest(implementation={"module": "a", "program": ["/x"]}),
    manifest(implementation={"program": ["x"], "package": "a"}),
    manifest(implementation={"module": "a", "package": "b"}),
    manifest(secrets=[{"name": "low", "description": "x"}]),
    manifest(capabilities={"net": [{"host": "a", "methods": []}]}),
]


def test_it_says_what_a_full_implementation_says() -> None:
    judged = [(not validate_manifest(document, "t"), JUDGE.is_valid(document)) for document in DOCUMENTS]

    assert [mine for mine, _ in judged] == [theirs for _, theirs in judged]
    assert {mine for mine, _ in judged} == {True, False}


def test_it_says_where_it_is_wrong_and_what_would_be_right() -> None:
    found = validate_manifest(manifest(side_effect="Some", capabilities={"net": [{"port": 0}]}, colour="red"), "echo")

    assert {(each.pointer, each.message[:22]) for each in found} == {
        ("/side_effect", "It must be one of None"),
        ("/capabilities/net/0", "host is missing."),
        ("/capabilities/net/0/port", "It is at least 1."),
        ("/colour", "There is no such field"),
    }
