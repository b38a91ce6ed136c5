"""Changes: is every change of a manifest named, with the bump that it needs and the attention that it deserves?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mistakes import remotes
from tests.mistakes.operations import DOCUMENT, PAGE, READ_FROM, served
from tests.mistakes.origins import MADE_OF, OBJECT, ORIGIN
from tests.support.manifests import manifest
from unitools.changes import KINDS, compare_manifests, compute_needed_bump
from unitools.changes.fields import INPUT_LIMITS, RUN_LIMITS
from unitools.compatibility import SCHEMA_KINDS
from unitools.manifest import manifest_schema

FS = {"fs": [{"path": "/data", "actions": ["read"]}]}
KEY = {"name": "API_KEY", "description": "Of the shop."}
HOSTS = KEY | {"hosts": ["api.example.org"]}
CONSENT = {"required": True, "validity_seconds": 600, "scope": "period"}
LONGER = CONSENT | {"validity_seconds": 601}
OLD_SCOPE = {"resource": "soul:shop:cart", "action": "read"}
LOCK = ["idna==3.10 --hash=sha256:" + "a" * 64]
OTHER = "--hash=sha256:" + "b" * 64
GONE = {"pointer": "/input_schema/properties/text", "since": "1.0.0", "advice": "Use words."}
SOON = GONE | {"sunset": "2027-01-01"}


def _locked(lines: list[str]) -> dict[str, Any]:
    return {"dependency_lock": lines}


def _origins(**changes: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"origin": ORIGIN}, {"origin": ORIGIN | changes}


def _objects(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"origin": MADE_OF}, {"origin": MADE_OF | changes}


def _documents(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"origin": READ_FROM}, {"origin": READ_FROM | changes}


def _remotes(**changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    both = [remotes.served(), remotes.served(**changes)]
    return tuple({name: each[name] for name in ("implementation", "origin")} for each in both)  # type: ignore[return-value]


def _operations(*more: dict[str, Any], **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return tuple({"implementation": each["implementation"]} for each in (served(), served(*more, **changes)))  # type: ignore[return-value]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str, str]] = {
    # kind: before, after, pointer, bump, risk
    "id.changed": ({}, {"id": "sample.tools.other"}, "/id", "major", "high"),
    "display_name.changed": ({}, {"display_name": "Other"}, "/display_name", "patch", "low"),
    "description.changed": ({}, {"description": "Other."}, "/description", "patch", "medium"),
    "call_sentence.added": ({}, {"call_sentence": "{text}"}, "/call_sentence", "patch", "high"),
    "call_sentence.changed": ({"call_sentence": "{text}"}, {"call_sentence": "Say {text}"}, "/call_sentence", "patch", "high"),
    "call_sentence.removed": ({"call_sentence": "{text}"}, {}, "/call_sentence", "patch", "high"),
    "examples.added": ({}, {"examples": ["What?"]}, "/examples/0", "patch", "low"),
    "examples.removed": ({"examples": ["What?"]}, {}, "/examples/0", "patch", "low"),
    "localizations.added": ({}, {"localizations": {"de": {"display_name": "Echo"}}}, "/localizations/de", "patch", "high"),
    "localizations.changed": (
        {"localizations": {"de": {"display_name": "Echo"}}}, {"localizations": {"de": {"display_name": "Hall"}}},
        "/localizations/de/display_name", "patch", "high",
    ),
    "localizations.removed": ({"localizations": {"de": {"display_name": "Echo"}}}, {}, "/localizations/de", "patch", "low"),
    "tags.added": ({}, {"tags": ["sample", "safe"]}, "/tags/1", "minor", "medium"),
    "tags.removed": ({"tags": ["sample", "safe"]}, {}, "/tags/1", "minor", "medium"),
    "scopes.added": ({}, {"scopes": [OLD_SCOPE]}, "/scopes/0", "major", "high"),
    "scopes.removed": ({"scopes": [OLD_SCOPE]}, {}, "/scopes/0", "minor", "low"),
    "capabilities.added": ({}, {"capabilities": FS}, "/capabilities/fs/0", "major", "high"),
    "capabilities.removed": ({"capabilities": FS}, {}, "/capabilities/fs/0", "minor", "low"),
    "secrets.added": ({}, {"secrets": [KEY]}, "/secrets/0", "major", "high"),
    "secrets.removed": ({"secrets": [KEY]}, {}, "/secrets/0", "minor", "low"),
    "secrets.widened": ({"secrets": [HOSTS]}, {"secrets": [KEY]}, "/secrets/0/hosts", "major", "high"),
    "secrets.narrowed": ({"secrets": [KEY]}, {"secrets": [HOSTS]}, "/secrets/0/hosts", "minor", "low"),
    "secrets.required": ({"secrets": [KEY | {"required": False}]}, {"secrets": [KEY]}, "/secrets/0/required", "major", "medium"),
    "secrets.optional": ({"secrets": [KEY]}, {"secrets": [KEY | {"required": False}]}, "/secrets/0/required", "minor", "low"),
    "secrets.described": ({"secrets": [KEY]}, {"secrets": [KEY | {"description": "x"}]}, "/secrets/0/description", "patch", "low"),
    "data_classes.added": ({}, {"data_classes": ["health"]}, "/data_classes/0", "major", "high"),
    "data_classes.removed": ({"data_classes": ["health"]}, {}, "/data_classes/0", "minor", "low"),
    "side_effect.raised": ({"side_effect": "Read"}, {"side_effect": "Network"}, "/side_effect", "major", "high"),
    "side_effect.lowered": ({"side_effect": "Network"}, {"side_effect": "Read"}, "/side_effect", "minor", "high"),
    "safety_class.raised": ({}, {"safety_class": "Medium"}, "/safety_class", "minor", "medium"),
    "safety_class.lowered": ({"safety_class": "Medium"}, {}, "/safety_class", "minor", "high"),
    "consent.required": ({}, {"consent": {"required": True}}, "/consent/required", "major", "medium"),
    "consent.tightened": ({"consent": CONSENT}, {"consent": CONSENT | {"scope": "once"}}, "/consent/scope", "minor", "medium"),
    "consent.loosened": ({"consent": CONSENT}, {"consent": LONGER}, "/consent/validity_seconds", "major", "high"),
    "idempotency_keep.raised": ({}, {"idempotency_keep_seconds": 90_000}, "/idempotency_keep_seconds", "minor", "low"),
    "idempotency_keep.lowered": (
        {"idempotency_keep_seconds": 90_000},
        {"idempotency_keep_seconds": 86_400},
        "/idempotency_keep_seconds",
        "major",
        "medium",
    ),
    "timeout.raised": ({}, {"timeout_ms": 6000}, "/timeout_ms", "patch", "low"),
    "timeout.lowered": ({}, {"timeout_ms": 4000}, "/timeout_ms", "minor", "medium"),
    "limits.input_raised": ({"limits": {"max_bytes_in": 10}}, {}, "/limits/max_bytes_in", "minor", "low"),
    "limits.input_lowered": ({}, {"limits": {"max_bytes_in": 10}}, "/limits/max_bytes_in", "major", "medium"),
    "limits.raised": ({"limits": {"concurrency": 2}}, {}, "/limits/concurrency", "patch", "low"),
    "limits.lowered": ({}, {"limits": {"concurrency": 2}}, "/limits/concurrency", "minor", "medium"),
    "limits.depth_raised": ({"limits": {"depth": 3}}, {}, "/limits/depth", "minor", "low"),
    "limits.depth_lowered": ({}, {"limits": {"depth": 3}}, "/limits/depth", "major", "medium"),
    "concurrency.changed": ({}, {"concurrency": "serial"}, "/concurrency", "minor", "medium"),
    "state.added": ({}, {"state": {"kind": "files"}}, "/state", "minor", "high"),
    "state.removed": ({"state": {"kind": "files"}}, {}, "/state", "major", "medium"),
    "state.scope_changed": (
        {"state": {"kind": "files"}},
        {"state": {"kind": "files", "scope": "person"}},
        "/state/scope",
        "major",
        "high",
    ),
    "state.changed": (
        {"state": {"kind": "files"}},
        {"state": {"kind": "files", "max_files": 3}},
        "/state",
        "minor",
        "medium",
    ),
    "idempotency.strengthened": ({}, {"idempotency": "keyed"}, "/idempotency", "minor", "low"),
    "idempotency.weakened": ({"idempotency": "keyed"}, {}, "/idempotency", "major", "high"),
    "dry_run.added": ({}, {"dry_run": True}, "/dry_run", "minor", "low"),
    "dry_run.removed": ({"dry_run": True}, {}, "/dry_run", "major", "medium"),
    "provider_compat.widened": ({"provider_compat": {"models": ["a"]}}, {}, "/provider_compat/models", "minor", "low"),
    "provider_compat.narrowed": ({}, {"provider_compat": {"models": ["a"]}}, "/provider_compat/models", "major", "medium"),
    "provider_compat.platform_changed": ({}, {"provider_compat": {"platform": ">=1"}}, "/provider_compat/platform", "minor", "medium"),
    "deprecations.added": ({}, {"deprecations": [GONE]}, "/deprecations/0", "minor", "low"),
    "deprecations.changed": ({"deprecations": [GONE]}, {"deprecations": [SOON]}, "/deprecations/0", "minor", "low"),
    "deprecations.removed": ({"deprecations": [GONE]}, {}, "/deprecations/0", "patch", "low"),
    "model.changed": ({"model": {"name": "one"}}, {"model": {"name": "two"}}, "/model", "patch", "medium"),
    "implementation.changed": ({}, {"implementation": {"module": "sample.other"}}, "/implementation", "patch", "medium"),
    "requires_sandbox.raised": ({"requires_sandbox": False}, {}, "/requires_sandbox", "minor", "low"),
    "requires_sandbox.lowered": ({}, {"requires_sandbox": False}, "/requires_sandbox", "major", "high"),
    "isolation.strengthened": ({}, {"isolation": "single"}, "/isolation", "patch", "low"),
    "isolation.weakened": ({"isolate_by": "agent"}, {}, "/isolate_by", "minor", "high"),
    "dependencies.added": ({}, {"dependencies": ["idna==3.10"]}, "/dependencies/0", "patch", "medium"),
    "dependencies.changed": ({"dependencies": ["idna==3.10"]}, {"dependencies": ["idna==3.11"]}, "/dependencies/0", "patch", "medium"),
    "dependencies.removed": ({"dependencies": ["idna==3.10"]}, {}, "/dependencies/0", "patch", "low"),
    "lock.added": (_locked(LOCK), _locked([*LOCK, f"a==1 {OTHER}"]), "/dependency_lock/1", "patch", "medium"),
    "lock.changed": (_locked(LOCK), _locked([LOCK[0].replace("3.10", "3.11")]), "/dependency_lock/0", "patch", "medium"),
    "lock.files_added": (_locked(LOCK), _locked([f"{LOCK[0]} {OTHER}"]), "/dependency_lock/0", "patch", "medium"),
    "lock.files_removed": (_locked([f"{LOCK[0]} {OTHER}"]), _locked(LOCK), "/dependency_lock/0", "patch", "low"),
    "lock.files_replaced": (_locked(LOCK), _locked([f"idna==3.10 {OTHER}"]), "/dependency_lock/0", "patch", "high"),
    "lock.removed": ({"dependency_lock": LOCK}, {}, "/dependency_lock/0", "patch", "low"),
    "determinism.changed": ({}, {"determinism": {"ignore": ["/at"]}}, "/determinism", "minor", "low"),
    "output_repair.added": ({}, {"output_repair": ["wrap"]}, "/output_repair/0", "minor", "medium"),
    "output_repair.removed": ({"output_repair": ["wrap"]}, {}, "/output_repair/0", "minor", "medium"),
    "constraints.added": ({}, {"dependency_constraints": ["mcp<2"]}, "/dependency_constraints/0", "patch", "low"),
    "constraints.removed": ({"dependency_constraints": ["mcp<2"]}, {}, "/dependency_constraints/0", "patch", "low"),
    "origin.added": ({}, {"origin": ORIGIN}, "/origin", "patch", "high"),
    "origin.removed": ({"origin": ORIGIN}, {}, "/origin", "patch", "high"),
    "origin.package_changed": (*_origins(package="other"), "/origin/package", "major", "high"),
    "origin.version_changed": (*_origins(version="1.1"), "/origin/version", "patch", "medium"),
    "origin.tool_changed": (*_origins(tool="other"), "/origin/tool", "major", "high"),
    "origin.result_changed": (*_origins(result="structured"), "/origin/result", "patch", "medium"),
    "origin.entry_changed": (*_origins(entry_digest="sha256:" + "b" * 64), "/origin/entry_digest", "patch", "high"),
    "origin.listing_changed": (*_origins(listing_digest="sha256:" + "b" * 64), "/origin/listing_digest", "patch", "medium"),
    "origin.protocol_changed": (*_origins(protocol="2026-07-28"), "/origin/protocol", "patch", "low"),
    "origin.document_changed": (*_documents(document=DOCUMENT | {"version": "4"}), "/origin/document", "patch", "low"),
    "origin.operation_changed": (*_documents(operation="other"), "/origin/operation", "major", "high"),
    "origin.description_changed": (*_documents(operation_digest="sha256:" + "b" * 64), "/origin/operation_digest", "patch", "high"),
    "origin.object_changed": (*_objects(object=OBJECT | {"name": "a_package:Wipe"}), "/origin/object/name", "major", "high"),
    "origin.object_version_changed": (*_objects(object=OBJECT | {"version": "1.1"}), "/origin/object/version", "patch", "high"),
    "origin.object_description_changed": (*_objects(object_digest="sha256:" + "b" * 64), "/origin/object_digest", "patch", "high"),
    "operation.changed": (*_operations(PAGE), "/implementation/operation/arguments", "patch", "medium"),
    "operation.reach_changed": (*_operations(method="DELETE"), "/implementation/operation/method", "major", "high"),
    "origin.url_changed": (*_remotes(origin={"url": "https://b.example.org/mcp"}), "/origin/url", "major", "high"),
    "remote.changed": (*_remotes(listing="mcp_other"), "/implementation/remote/listing", "patch", "medium"),
    "remote.reach_changed": (*_remotes(url="https://b.example.org/mcp"), "/implementation/remote/url", "major", "high"),
    "quotes.added": ({}, {"quotes": ["price"]}, "/quotes/0", "minor", "low"),
    "quotes.removed": ({"quotes": ["price"]}, {}, "/quotes/0", "minor", "low"),
    "ttl.added": ({}, {"ttl_seconds": 60}, "/ttl_seconds", "minor", "low"),
    "ttl.raised": ({"ttl_seconds": 60}, {"ttl_seconds": 61}, "/ttl_seconds", "minor", "medium"),
    "ttl.lowered": ({"ttl_seconds": 60}, {"ttl_seconds": 59}, "/ttl_seconds", "minor", "low"),
    "ttl.removed": ({"ttl_seconds": 60}, {}, "/ttl_seconds", "minor", "medium"),
    "async.changed": ({}, {"async": True}, "/async", "major", "medium"),
    "field.changed": ({}, {"colour": "red"}, "/colour", "major", "high"),
    "field.rewritten": ({}, {"safety_class": "Low"}, "/safety_class", "patch", "low"),
}  # fmt: skip


def changed(fields: dict[str, Any]) -> dict[str, Any]:
    return manifest() | fields


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("kind", CASES)
def test_each_kind_of_change_has_its_place_its_bump_and_its_risk(kind: str) -> None:
    before, after, pointer, bump, risk = CASES[kind]

    found = compare_manifests(manifest(**before), manifest(**after))

    assert [(each.kind, each.pointer, each.bump, each.risk) for each in found] == [(kind, pointer, bump, risk)]
    assert found[0].message.endswith(".")
    assert "{" not in found[0].message.replace('{"', "")


def test_every_kind_has_a_case() -> None:
    assert set(CASES) == set(KINDS) - {"version.not_increased"}


def test_a_manifest_does_not_differ_from_itself_or_from_its_next_version() -> None:
    assert compare_manifests(manifest(), manifest()) == []
    assert compare_manifests(manifest(), manifest(version="7.0.0")) == []
    assert compute_needed_bump([]) == "none"


@pytest.mark.req("TOOLS-9")
def test_every_field_that_the_manifest_may_have_is_judged_by_a_rule_of_its_own() -> None:
    """A field that is added to the manifest's schema should get a rule; without one each change of it is breaking."""
    from unitools.changes import SCHEMAS
    from unitools.changes.fields import FIELDS
    from unitools.manifest import manifest_schema

    assert set(manifest_schema()["properties"]) - set(FIELDS) - set(SCHEMAS) == {"version", "manifest_version"}


# Consent.


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        ({"safety_class": "High"}, {"safety_class": "Low"}, {"safety_class.lowered", "consent.loosened"}),
        ({"safety_class": "Low"}, {"safety_class": "High"}, {"safety_class.raised", "consent.required"}),
        ({"side_effect": "Write"}, {"side_effect": "Read"}, {"side_effect.lowered", "consent.loosened"}),
        ({"side_effect": "Write"}, {"side_effect": "Process"}, {"side_effect.raised"}),
        ({"side_effect": "None"}, {"side_effect": "Read"}, {"side_effect.raised"}),
        (
            {"side_effect": "Write", "consent": {"required": True}},
            {"side_effect": "Read", "consent": {"required": True}},
            {"side_effect.lowered"},
        ),
        ({"safety_class": "High", "consent": {"required": True}}, {"safety_class": "High"}, {"field.rewritten"}),
    ],
)
def test_whether_a_consent_is_needed_counts_not_where_it_is_written(
    before: dict[str, Any], after: dict[str, Any], kinds: set[str]
) -> None:
    assert {each.kind for each in compare_manifests(manifest(**before), manifest(**after))} == kinds


# What a run is given.


@pytest.mark.req("TOOLS-9", "TOOLS-17")
@pytest.mark.parametrize(
    ("before", "after", "kind", "bump"),
    [
        (None, "shared", "field.rewritten", "patch"),
        (None, "cold", "isolation.strengthened", "patch"),
        ("fresh", "single", "isolation.strengthened", "patch"),
        ("single", "fresh", "isolation.weakened", "minor"),
        ("fresh", None, "isolation.weakened", "minor"),
        ("fresh", "warm", "field.changed", "major"),
    ],
)
def test_more_isolation_is_a_patch_and_less_of_it_a_risk(before: Any, after: Any, kind: str, bump: str) -> None:
    (found,) = compare_manifests(manifest(isolation=before), manifest(isolation=after))

    assert (found.kind, found.bump) == (kind, bump)
    assert (found.risk == "high") is (kind in ("isolation.weakened", "field.changed"))


@pytest.mark.parametrize("name", RUN_LIMITS)
def test_a_lower_limit_of_the_run_is_a_minor_and_a_higher_one_a_patch(name: str) -> None:
    low, high = (manifest(limits={name: amount}) for amount in (1, 2))

    for before, after, kind, bump in ((low, high, "limits.raised", "patch"), (high, low, "limits.lowered", "minor")):
        found = [(each.kind, each.pointer, each.bump) for each in compare_manifests(before, after)]
        assert found == [(kind, f"/limits/{name}", bump)]


def test_each_limit_of_a_manifest_is_one_of_the_run_or_of_what_callers_send() -> None:
    assert {*RUN_LIMITS, *INPUT_LIMITS} == set(manifest_schema()["properties"]["limits"]["properties"])


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({}, {"idle_ms": 500}, "limits.lowered"),
        ({"idle_ms": 500}, {"idle_ms": 0}, "limits.raised"),
        ({"idle_ms": 500}, {"idle_ms": 900}, "limits.raised"),
        ({}, {"idle_ms": []}, "field.changed"),
    ],
)
def test_no_limit_to_silence_is_the_longest_silence(before: Any, after: Any, kind: str) -> None:
    (found,) = compare_manifests(manifest(limits=before), manifest(limits=after))

    assert (found.kind, found.pointer) == (kind, "/limits/idle_ms")


# Reach.

READ = ["read"]
TENS = {"host": "b.org", "ports": ["10-30"]}
COVERED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # what is asked for now, what was asked for
    ({"fs": [{"path": "/a/b", "actions": READ}]}, {"fs": [{"path": "/a", "actions": ["read", "write"]}]}),
    ({"fs": [{"path": "/a", "actions": ["read", "write"]}]}, {"fs": [{"path": "/a", "actions": [a]} for a in ("write", "read")]}),
    ({"fs": [{"path": "/a/x", "actions": READ, "kind": "file"}]}, {"fs": [{"path": "/", "actions": READ}]}),
    ({"net": [{"host": "a.b.org"}]}, {"net": [{"host": "*.b.org", "port": 443}]}),
    ({"net": [{"host": "*.a.b.org"}]}, {"net": [{"host": "*.b.org"}]}),
    ({"net": [{"host": "b.org", "ports": ["1-20"]}]}, {"net": [{"host": "*", "ports": ["1-9"]}, TENS]}),
    ({"net": [{"host": "b.org", "methods": ["GET"]}]}, {"net": [{"host": "b.org"}]}),
    ({"net": [{"host": "b.org", "methods": ["GET", "PUT"]}]}, {"net": [{"host": "b.org", "methods": [m]} for m in ("GET", "PUT")]}),
    ({"cidr": [{"cidr": "10.1.2.0/24", "ports": ["80"]}]}, {"cidr": [{"cidr": "10.1.0.0/16", "ports": ["1-100"]}]}),
    ({"tmp": 10}, {"tmp": 20}),
    ({"proc": ["/bin/a"]}, {"proc": ["/bin/b", "/bin/a"]}),
    ({"browser": False}, {}),
]  # fmt: skip
NOT_COVERED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"fs": [{"path": "/database", "actions": READ}]}, {"fs": [{"path": "/data", "actions": READ}]}),
    ({"fs": [{"path": "/a", "actions": READ}]}, {"fs": [{"path": "/a/b", "actions": READ}]}),
    ({"fs": [{"path": "/a/../b", "actions": READ}]}, {"fs": [{"path": "/a", "actions": READ}]}),
    ({"fs": [{"path": "/a", "actions": READ}]}, {"fs": [{"path": "/a", "actions": READ, "kind": "file"}]}),
    ({"fs": [{"path": "/a", "actions": ["write"]}]}, {"fs": [{"path": "/a", "actions": READ}]}),
    ({"fs": [{"path": "/a", "actions": READ, "as": "root"}]}, {"fs": [{"path": "/a", "actions": READ}]}),
    ({"net": [{"host": "b.org"}]}, {"net": [{"host": "*.b.org"}]}),
    ({"net": [{"host": "evilb.org"}]}, {"net": [{"host": "*.b.org"}]}),
    ({"net": [{"host": "*"}]}, {"net": [{"host": "*.b.org"}]}),
    ({"net": [{"host": "b.org", "scheme": "http"}]}, {"net": [{"host": "b.org"}]}),
    ({"net": [{"host": "b.org", "port": 80}]}, {"net": [{"host": "b.org"}]}),
    ({"net": [{"host": "b.org", "ports": ["1-20"]}]}, {"net": [{"host": "b.org", "ports": ["1-9", "11-20"]}]}),
    ({"net": [{"host": "b.org"}]}, {"net": [{"host": "b.org", "methods": ["GET"]}]}),
    ({"cidr": [{"cidr": "10.0.0.0/8", "ports": ["80"]}]}, {"cidr": [{"cidr": "10.1.0.0/16", "ports": ["80"]}]}),
    ({"cidr": [{"cidr": "::/0", "ports": ["80"]}]}, {"cidr": [{"cidr": "0.0.0.0/0", "ports": ["80"]}]}),
    ({"tmp": 20}, {"tmp": 10}),
    ({"browser": True}, {}),
    ({"proc": ["/bin/ab"]}, {"proc": ["/bin/a"]}),
    ({"gpu": 1}, {}),
]  # fmt: skip


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("asked", COVERED)
def test_what_was_covered_already_is_no_wider_reach(asked: tuple[dict[str, Any], dict[str, Any]]) -> None:
    found = compare_manifests(manifest(capabilities=asked[1]), manifest(capabilities=asked[0]))

    assert found
    assert "capabilities.added" not in {each.kind for each in found}


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("asked", NOT_COVERED)
def test_what_was_not_covered_is_a_wider_reach(asked: tuple[dict[str, Any], dict[str, Any]]) -> None:
    found = compare_manifests(manifest(capabilities=asked[1]), manifest(capabilities=asked[0]))

    assert compute_needed_bump(found) == "major"
    assert "high" in {each.risk for each in found}


# Identity, storage, hostility.


def test_the_same_change_has_the_same_id_and_different_ones_do_not() -> None:
    pairs = [compare_manifests(manifest(**before), manifest(**after))[0] for before, after, *_ in CASES.values()]
    again = [compare_manifests(manifest(**before), manifest(**after))[0] for before, after, *_ in CASES.values()]

    assert [each.id for each in pairs] == [each.id for each in again]
    assert len({each.id for each in pairs}) == len(CASES)
    assert compare_manifests(manifest(timeout_ms=1), manifest(timeout_ms=3))[0].id == (
        compare_manifests(manifest(timeout_ms=2), manifest(timeout_ms=3))[0].id
    )


def test_a_change_can_be_stored_as_json_and_long_values_are_cut() -> None:
    (change,) = compare_manifests(manifest(), manifest(description="word " * 2000))
    stored = json.loads(json.dumps(change.to_json()))

    assert set(stored) == {"id", "kind", "pointer", "before", "after", "bump", "risk", "message"}
    assert len(stored["after"]) < 300
    assert "10,002 characters" in stored["after"]


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, [5], [[]], [{}], {"a": []}, True, [None]])
@pytest.mark.parametrize("field", sorted({*manifest(), "capabilities", "secrets", "limits", "consent", "provider_compat",
                                          "deprecations", "dependencies", "scopes", "config_schema"} - {"version"}))  # fmt: skip
def test_a_field_of_the_wrong_form_is_a_change_and_no_crash(field: str, value: Any) -> None:
    """The command line is given files that nobody has checked."""
    odd = manifest() | {field: value}
    if odd == manifest():
        return

    assert compare_manifests(manifest(), odd)
    assert compare_manifests(odd, manifest())
    assert compare_manifests(odd, odd) == []


SCHEMA_PREFIXES = ("input", "output", "config_schema")


@pytest.mark.req("TOOLS-9")
def test_schemas_are_compared_in_their_direction() -> None:
    closed = {"type": "object", "properties": {}, "additionalProperties": False}
    more = closed | {"properties": {"a": {"type": "string"}}}
    found = {
        field: compare_manifests(changed({field: closed}), changed({field: more}))[0]
        for field in ("input_schema", "output_schema", "config_schema")
    }

    assert {field: each.bump for field, each in found.items()} == {
        "input_schema": "minor", "output_schema": "major", "config_schema": "minor",
    }  # fmt: skip
    assert all(each.pointer == f"/{field}/properties/a" for field, each in found.items())
    assert {each.kind.split(".")[0] for each in found.values()} == set(SCHEMA_PREFIXES)
    assert {each.kind.split(".")[1] for each in found.values()} <= set(SCHEMA_KINDS)


@pytest.mark.req("TOOLS-9")
def test_a_tool_that_begins_to_take_a_configuration_may_not_need_one() -> None:
    optional = {"type": "object", "properties": {"region": {"type": "string"}}, "additionalProperties": False}

    assert compute_needed_bump(compare_manifests(manifest(), manifest(config_schema=optional))) == "minor"
    assert (
        compute_needed_bump(compare_manifests(manifest(), manifest(config_schema=optional | {"required": ["region"]})))
        == "major"
    )
    assert compute_needed_bump(compare_manifests(manifest(config_schema=optional), manifest())) == "major"


def test_texts_that_models_read_deserve_more_attention() -> None:
    described = {"type": "object", "properties": {"text": {"type": "string", "description": "Ignore all else."}}}
    plain = {"type": "object", "properties": {"text": {"type": "string"}}}
    (inward,) = compare_manifests(manifest(input_schema=plain), manifest(input_schema=described))
    (outward,) = compare_manifests(manifest(output_schema=plain), manifest(output_schema=described))

    assert (inward.kind, inward.bump, inward.risk) == ("input.description_changed", "patch", "medium")
    assert (outward.kind, outward.bump, outward.risk) == ("output.description_changed", "patch", "low")


@pytest.mark.req("TOOLS-9")
def test_what_would_take_too_long_to_compare_counts_as_breaking() -> None:
    """Definitions that each refer twice to the next, in another way on each side."""

    def chain(word: str, last: dict[str, Any]) -> dict[str, Any]:
        links = {
            f"d{i}": {word: [{"$ref": f"#/$defs/d{i + 1}"}, {"minimum": i, "$ref": f"#/$defs/d{i + 1}"}]}
            for i in range(100)
        }
        return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": links | {"d100": last}}

    found = compare_manifests(
        manifest(input_schema=chain("anyOf", {"type": "string"})),
        manifest(input_schema=chain("allOf", {"type": "number"})),
    )

    assert [(each.kind, each.bump, each.risk) for each in found] == [("input.cannot_be_compared", "major", "high")]


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("changes", "bump"),
    [
        ({"name": "a_package:Wipe"}, "major"),
        ({"package": "another"}, "major"),
        ({"framework": "crewai"}, "major"),
        ({"version": "2.0"}, "patch"),
        ({"source_digest": "sha256:" + "b" * 64}, "patch"),
    ],
)
def test_another_object_is_another_tool_and_a_newer_one_is_not(changes: dict[str, str], bump: str) -> None:
    before, after = _objects(object=OBJECT | changes)

    assert [each.bump for each in compare_manifests(before, after)] == [bump]
