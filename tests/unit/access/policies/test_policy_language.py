"""Policy language: is what is wrong with a policy found, and said where it is?"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonschema
import pytest

from access.policies.attributes import ATTRIBUTES
from access.policies.clauses import SAYS, RuleEffect
from access.policies.compiler import BUILTIN_DOCUMENT, PolicyUnreadable, compile_policy
from access.policies.findings import is_sound
from access.policies.language import MAX_RULES, document_schema, validate_policy
from access.policies.text import read_text, write_text
from kernel.problems import SchemaInvalid
from tests.support import policies


def one(rule: Any) -> dict[str, Any]:
    return {"format": 1, "rules": [rule]}


def when(**atoms: Any) -> dict[str, Any]:
    return one({"id": "r", "effect": "permit", "when": atoms})


WRONG: list[tuple[Any, str, str]] = [
    (None, "", "document"),
    ([], "", "document"),
    ({"rules": []}, "/format", "document"),
    ({"format": True, "rules": []}, "/format", "document"),
    ({"format": 2, "rules": []}, "/format", "document"),
    ({"format": 1}, "/rules", "document"),
    ({"format": 1, "rules": [], "extra": 1}, "/extra", "document"),
    ({"format": 1, "rules": [], "note": 1}, "/note", "note"),
    ({"format": 1, "rules": [{"id": "r", "effect": "permit"}] * (MAX_RULES + 1)}, "/rules", "size"),
    ({"format": 1, "rules": [{"id": f"r{n}", "effect": "forbid", "note": "x" * 500} for n in range(300)]}, "", "size"),
    (one("text"), "/rules/0", "rule"),
    (one({"effect": "permit"}), "/rules/0/id", "rule.id"),
    (one({"id": "No Spaces", "effect": "permit"}), "/rules/0/id", "rule.id"),
    (one({"id": "r"}), "/rules/0/effect", "rule.effect"),
    (one({"id": "r", "effect": "allow"}), "/rules/0/effect", "rule.effect"),
    (one({"id": "r", "effect": ["permit"]}), "/rules/0/effect", "rule.effect"),
    (one({"id": "r", "effect": "permit", "level": "cold"}), "/rules/0/level", "rule"),
    (one({"id": "r", "effect": "isolation"}), "/rules/0", "rule"),
    (one({"id": "r", "effect": "ceiling"}), "/rules/0", "rule"),
    (one({"id": "r", "effect": "permit", "when": []}), "/rules/0/when", "when"),
    (when(colour={"equals": "red"}), "/rules/0/when/colour", "when.attribute"),
    (when(hour=12), "/rules/0/when/hour", "when.atom"),
    (when(hour={}), "/rules/0/when/hour", "when.atom"),
    (when(hour={"contains": 1}), "/rules/0/when/hour/contains", "when.atom"),
    (when(tags={"equals": "a"}), "/rules/0/when/tags/equals", "when.atom"),
    (when(hour={"equals": "12"}), "/rules/0/when/hour/equals", "when.type"),
    (when(hour={"equals": True}), "/rules/0/when/hour/equals", "when.type"),
    (when(hour={"at_least": 1.5}), "/rules/0/when/hour/at_least", "when.type"),
    (when(dry_run={"equals": 1}), "/rules/0/when/dry_run/equals", "when.type"),
    (when(model={"has": 1}), "/rules/0/when/model/has", "when.type"),
    (when(model={"equals": ""}), "/rules/0/when/model/equals", "when.type"),
    (when(model={"in": []}), "/rules/0/when/model/in", "when.type"),
    (when(model={"in": "m"}), "/rules/0/when/model/in", "when.type"),
    (when(origin={"in": ["api", "web"]}), "/rules/0/when/origin/in/1", "when.value"),
    (when(domains={"contains": ["net", "gpu"]}), "/rules/0/when/domains/contains/1", "when.value"),
    (when(tags={"contains": []}), "/rules/0/when/tags/contains", "when.type"),
    (when(tool={"equals": "shop.*"}), "/rules/0/when/tool/equals", "when.type"),
    (when(group={"equals": "shop.prices"}), "/rules/0/when/group/equals", "when.type"),
    (when(tool={"matches": "shop.* &"}), "/rules/0/when/tool/matches", "when.expression"),
    (when(tool={"matches": 1}), "/rules/0/when/tool/matches", "when.expression"),
    (when(tool={"not": {"matches": "("}}), "/rules/0/when/tool/not/matches", "when.expression"),
    (when(hour={"not": {"not": {"not": {"not": {"equals": 1}}}}}), "/rules/0/when/hour/not/not/not/not", "when.atom"),
    (
        when(tool={"matches": " & ".join(f"(tag:a{n} | tag:b{n})" for n in range(8))}),
        "/rules/0/when",
        "when.size",
    ),
    (one({"id": "r", "effect": "consent", "consent": {"mode": "twice"}}), "/rules/0/consent/mode", "consent"),
    (one({"id": "r", "effect": "consent", "consent": {}}), "/rules/0/consent", "consent"),
    (
        one({"id": "r", "effect": "consent", "consent": {"mode": "once", "validity_s": 1}}),
        "/rules/0/consent/validity_s",
        "consent",
    ),
    (one({"id": "r", "effect": "consent", "consent": {"mode": "once", "for": 1}}), "/rules/0/consent/for", "consent"),
    (one({"id": "r", "effect": "ceiling", "capabilities": []}), "/rules/0/capabilities", "capabilities"),
    (
        one({"id": "r", "effect": "ceiling", "capabilities": {"fs": [{"path": "a/..", "actions": ["read"]}]}}),
        "/rules/0/capabilities",
        "capabilities",
    ),
    (one({"id": "r", "effect": "ceiling", "limits": {}}), "/rules/0/limits", "limits"),
    (one({"id": "r", "effect": "ceiling", "limits": {"timeout": 1}}), "/rules/0/limits/timeout", "limits"),
    (one({"id": "r", "effect": "ceiling", "limits": {"timeout_ms": 0}}), "/rules/0/limits/timeout_ms", "limits"),
    (one({"id": "r", "effect": "isolation", "level": "warm"}), "/rules/0/level", "isolation"),
    (one({"id": "r", "effect": "isolation", "untrusted": False}), "/rules/0/untrusted", "isolation"),
    (one({"id": "r", "effect": "isolation", "level": "cold", "untrusted": 1}), "/rules/0/untrusted", "isolation"),
    (one({"id": "r", "effect": "oblige", "obligations": []}), "/rules/0/obligations", "obligations"),
    (one({"id": "r", "effect": "oblige", "obligations": ["mask"]}), "/rules/0/obligations/0", "obligations"),
    (one({"id": "r", "effect": "price", "amount_micros": -1}), "/rules/0/amount_micros", "price"),
    (one({"id": "r", "effect": "degrade"}), "/rules/0", "rule"),
    (one({"id": "r", "effect": "degrade", "tools": "some"}), "/rules/0/tools", "degrade"),
    (one({"id": "r", "effect": "degrade", "answered_by": "small"}), "/rules/0/answered_by", "degrade"),
]


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(("document", "pointer", "rule"), WRONG)
def test_a_mistake_is_found_where_it_is(document: Any, pointer: str, rule: str) -> None:
    findings = validate_policy(document)

    assert (pointer, rule) in {(each.pointer, each.rule) for each in findings}, findings
    assert not is_sound(findings)
    assert all(each.message and each.fix for each in findings)


@pytest.mark.req("TOOLS-31")
def test_two_rules_with_one_id_are_refused_at_the_second() -> None:
    document = policies.permits({"id": "all", "effect": "forbid"})

    assert [(each.pointer, each.rule) for each in validate_policy(document)] == [("/rules/1/id", "rule.id")]


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize("document", [document for document, _, _ in WRONG[1:]])
def test_what_is_wrong_is_never_compiled(document: Any) -> None:
    with pytest.raises(PolicyUnreadable):
        compile_policy(document, "tenant@1", "")


@pytest.mark.req("TOOLS-31")
def test_a_typing_mistake_is_met_with_a_suggestion() -> None:
    [finding] = validate_policy(when(side_efect={"equals": "Write"}))

    assert finding.fix == "Did you mean side_effect?"


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(
    "atoms",
    [
        {"hour": {"at_least": 24}},
        {"hour": {"at_least": 9, "at_most": 8}},
        {"dry_run": {"has": False}},
        {"tool": {"has": False}},
        {"tool": {"matches": "shop.*"}, "group": {"equals": "web"}},
        {"tool": {"equals": "shop.a.b", "not": {"matches": "shop.*"}}},
        {"tool": {"matches": "tag:a & ~tag:a"}},
        {"dry_run": {"equals": True, "not": {"equals": True}}},
        {"side_effect": {"equals": "Read"}, "tool": {"matches": "effect:Write"}},
    ],
)
def test_a_rule_that_no_call_can_match_is_a_warning(atoms: dict[str, Any]) -> None:
    [finding] = validate_policy(policies.permits({"id": "never", "effect": "forbid", "when": atoms}))

    assert (finding.rule, finding.severity, finding.pointer) == ("rule.never_matches", "warning", "/rules/1/when")


@pytest.mark.req("TOOLS-31")
def test_a_rule_that_some_call_can_match_is_no_warning() -> None:
    random = Random(1)
    names = list(policies.VALUES)
    matched = 0
    for _ in range(200):
        rule = policies.rule(random, "r", names, ("permit", "forbid"))
        doubts = [each for each in validate_policy(one(rule)) if each.rule == "rule.never_matches"]
        compiled = policies.compiled(one(rule)).rules[0]
        if any(compiled.whole(policies.call(random, names)) for _ in range(30)):
            assert doubts == [], rule
            matched += 1

    assert matched > 50


@pytest.mark.req("TOOLS-31")
def test_a_policy_that_permits_nothing_is_a_warning() -> None:
    [finding] = validate_policy({"format": 1, "rules": []})

    assert (finding.rule, finding.severity) == ("policy.denies_all", "warning")


@pytest.mark.req("TOOLS-31")
def test_the_schema_knows_every_attribute_and_every_effect() -> None:
    defs = document_schema()["$defs"]

    assert set(defs["when"]["properties"]) == set(ATTRIBUTES)
    assert set(defs["rule"]["properties"]["effect"]["enum"]) == set(RuleEffect)
    said = {
        each["if"]["properties"]["effect"]["const"]: set(each["then"]["properties"]) for each in defs["rule"]["allOf"]
    }
    assert said == {effect: {"id", "effect", "when", "note", *names} for effect, names in SAYS.items()}


@pytest.mark.req("TOOLS-31")
def test_the_schema_accepts_what_the_checks_accept() -> None:
    jsonschema.Draft202012Validator.check_schema(document_schema())
    validator = jsonschema.Draft202012Validator(document_schema())
    random = Random(2)
    for _ in range(200):
        document = policies.document(random, list(policies.VALUES), 5)
        assert is_sound(validate_policy(document))
        assert validator.is_valid(document)
    assert validator.is_valid(BUILTIN_DOCUMENT)
    assert validate_policy(BUILTIN_DOCUMENT) == []


BEYOND_THE_SCHEMA = {"when.size", "when.expression", "capabilities", "size"}


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(("document", "pointer", "rule"), WRONG)
def test_the_schema_refuses_what_has_a_wrong_form(document: Any, pointer: str, rule: str) -> None:
    validator = jsonschema.Draft202012Validator(document_schema())

    assert not validator.is_valid(document) or rule in BEYOND_THE_SCHEMA or "not/not/not/not" in pointer


# Text.


@pytest.mark.req("TOOLS-31")
def test_json_and_yaml_say_the_same() -> None:
    document = policies.permits({"id": "r", "effect": "forbid", "when": {"hour": {"at_least": 20}}, "note": "Ünï 时"})

    assert read_text(write_text(document)) == document
    assert read_text(write_text(document, "yaml")) == document


@pytest.mark.req("TOOLS-31")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": 1,', "Line 1"),
        ('{"format": 1, "format": 1}', "twice"),
        ("format: 1\nformat: 2", "twice"),
        ('{"format": NaN}', "no number"),
        ("a: &x 1\nb: *x", "aliases"),
        ("a: !!python/object:os.system x", "Tags"),
        ("a: 2026-01-01", "timestamp"),
        ("a: 1.5", "float"),
        ("a: yes", "true or false"),
        ("a: 017", "differently"),
        ("a: 1_000", "differently"),
        ("a: 12345678901234567890", "differently"),
        ("? [a]\n: 1", "A name in an object"),
        ("a: [", "Line"),
        ("[" * 10_000, "nested"),
        ('{"a":' * 10_000, "nested"),
        ("x" * 300_000, "bytes"),
        ("\x00", "cannot be read"),
    ],
)
def test_a_text_that_can_be_read_in_two_ways_is_refused(text: str, said: str) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        read_text(text)

    assert said in caught.value.details["findings"][0]["message"], caught.value.details


@pytest.mark.req("TOOLS-31")
def test_a_text_without_rules_is_refused_as_a_document() -> None:
    for text in ("", "a word", "- a\n- b", json.dumps([1])):
        assert not is_sound(validate_policy(read_text(text)))
