"""Policy language: whether a document is a policy, and if not, what is wrong where.

``validate_policy`` says it for people: a pointer, the check that found it, a sentence and what to do. Errors keep a
document from being stored; warnings are shown beside it. ``document.schema.json`` says the same to programs.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from access.policies import clauses, conditions
from access.policies.attributes import ATTRIBUTES, AttributeType, list_atoms
from access.policies.clauses import SAYS, RuleEffect
from access.policies.findings import PolicyFinding, escape_step, quote_value, suggest_known
from access.policies.impact import spaces
from kernel.canonical import encode_hash_input
from unitools import expressions

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.policies.attributes import Attribute
    from access.policies.findings import Found

FORMAT = 1
MAX_RULES = 500
MAX_BYTES = 128 * 1024
TOOL_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){2}")
GROUP = re.compile(r"[a-z][a-z0-9_]*")
RULE_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
MAX_NOTE = 500
MAX_TEXT = 200
MAX_CHOICES = 200
MAX_NOT = 3
SCHEMA = Path(__file__).with_name("document.schema.json")
COMMON = ("id", "effect", "when", "note")


@lru_cache(maxsize=1)
def document_schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return found


@lru_cache(maxsize=1)
def _validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(document_schema())


def validate_policy(document: Any, *, doubts: bool = True) -> list[PolicyFinding]:
    """Everything that is wrong or, with ``doubts``, doubtful; errors first, nothing for a document without blemish."""
    found = list(_document(document))
    if not found:
        found += [
            PolicyFinding(
                "".join(f"/{step}" for step in error.instance_path), "schema", error.message[:300], "See the schema."
            )
            for error in _validator().iter_errors(document)
        ]
    if doubts and not found:
        found += _doubts(document)
    return sorted(found, key=lambda finding: finding.severity != "error")


def _document(document: Any) -> Found:
    if not isinstance(document, dict):
        yield PolicyFinding(
            "", "document", "A policy is an object with format and rules.", 'Write {"format": 1, "rules": […]}.'
        )
        return
    for name in sorted(set(document) - {"format", "rules", "note"}, key=str)[:20]:
        yield PolicyFinding(
            f"/{escape_step(name)}",
            "document",
            f"There is no member {quote_value(name)}.",
            "Use format, rules and note.",
        )
    if document.get("format") != FORMAT or isinstance(document.get("format"), bool):
        yield PolicyFinding("/format", "document", f"This hub reads format {FORMAT}.", f'Write "format": {FORMAT}.')
    yield from _note(document, "")
    rules = document.get("rules")
    if not isinstance(rules, list):
        yield PolicyFinding("/rules", "document", "A policy has a list of rules.", 'Write "rules": […].')
        return
    if len(rules) > MAX_RULES:
        yield PolicyFinding(
            "/rules", "size", f"A policy has at most {MAX_RULES} rules.", "Join rules that say the same."
        )
        return
    size = len(encode_hash_input(document)[1])
    if size > MAX_BYTES:
        yield PolicyFinding(
            "", "size", f"A policy has at most {MAX_BYTES:,} bytes; this one has {size:,}.", "Make it smaller."
        )
        return
    seen: dict[str, int] = {}
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"/rules/{index}")
        id = rule.get("id") if isinstance(rule, dict) else None
        if isinstance(id, str) and seen.setdefault(id, index) != index:
            fix = "Give every rule an id of its own; verdicts name rules by it."
            yield PolicyFinding(
                f"/rules/{index}/id", "rule.id", f"Rule {seen[id] + 1} has the id {quote_value(id)} too.", fix
            )


def _note(holder: dict[str, Any], pointer: str) -> Found:
    note = holder.get("note", "")
    if not isinstance(note, str) or len(note) > MAX_NOTE:
        yield PolicyFinding(
            f"{pointer}/note", "note", f"A note is a text of at most {MAX_NOTE} characters.", "Shorten it."
        )


def _rule(rule: Any, pointer: str) -> Found:
    if not isinstance(rule, dict):
        yield PolicyFinding(pointer, "rule", "A rule is an object.", 'Write {"id": …, "effect": …, "when": {…}}.')
        return
    id = rule.get("id")
    if not isinstance(id, str) or not RULE_ID.fullmatch(id):
        message = "A rule has an id of lower-case letters, digits, _ and -, at most 64 of them."
        yield PolicyFinding(f"{pointer}/id", "rule.id", message, 'For example "no-writes-at-night".')
    yield from _note(rule, pointer)
    wrong = list(_when(rule.get("when", {}), f"{pointer}/when"))
    yield from wrong
    if not wrong and spaces.count_boxes(conditions.build_condition(rule.get("when", {}))) > spaces.MAX_BOXES:
        message = f"This condition has more than {spaces.MAX_BOXES} alternatives."
        yield PolicyFinding(f"{pointer}/when", "when.size", message, "Split the rule into several.")
    effect = rule.get("effect")
    if effect not in tuple(RuleEffect):
        fix = suggest_known(effect, tuple(RuleEffect))
        yield PolicyFinding(f"{pointer}/effect", "rule.effect", f"There is no effect {quote_value(effect)}.", fix)
        return
    says = SAYS[RuleEffect(effect)]
    for name in sorted(set(rule) - {*COMMON, *says}, key=str)[:20]:
        fix = f"Take it out; a rule with this effect has {', '.join((*COMMON, *says))}."
        yield PolicyFinding(
            f"{pointer}/{escape_step(name)}", "rule", f"A {effect} rule says nothing about {quote_value(name)}.", fix
        )
    if says and not any(name in rule for name in says):
        message = f"A {effect} rule must say {' or '.join(says)}."
        yield PolicyFinding(pointer, "rule", message, f"Add {says[0]}.")
    for name in says:
        if name in rule:
            yield from clauses.CHECKS[name](rule[name], f"{pointer}/{name}")


def _when(when: Any, pointer: str) -> Found:
    if not isinstance(when, dict):
        yield PolicyFinding(pointer, "when", "A condition is an object: attribute → atom.", "Write {} for every call.")
        return
    for name, atom in when.items():
        attribute = ATTRIBUTES.get(name) if isinstance(name, str) else None
        if attribute is None:
            fix = suggest_known(name, tuple(ATTRIBUTES))
            yield PolicyFinding(
                f"{pointer}/{escape_step(name)}", "when.attribute", f"There is no attribute {quote_value(name)}.", fix
            )
        else:
            yield from _atom(attribute, atom, f"{pointer}/{name}", 0)


def _atom(attribute: Attribute, atom: Any, pointer: str, depth: int) -> Found:
    allowed = list_atoms(attribute)
    if not isinstance(atom, dict) or not atom:
        fix = f'For example {{"{allowed[0]}": …}}; {attribute.name} takes {", ".join(allowed)}.'
        yield PolicyFinding(pointer, "when.atom", "An atom is an object with at least one comparison.", fix)
        return
    for ask, value in atom.items():
        here = f"{pointer}/{escape_step(ask)}"
        if ask not in allowed:
            message = f"{attribute.name} cannot be asked {quote_value(ask)}."
            yield PolicyFinding(here, "when.atom", message, suggest_known(ask, allowed))
        elif ask == "not":
            if depth == MAX_NOT:
                yield PolicyFinding(here, "when.atom", f"Not is nested more than {MAX_NOT} times.", "Take two away.")
            else:
                yield from _atom(attribute, value, here, depth + 1)
        else:
            yield from _COMPARISONS[ask](attribute, value, here)


def _has(_attribute: Attribute, value: Any, pointer: str) -> Found:
    if not isinstance(value, bool):
        yield PolicyFinding(pointer, "when.type", "has is true or false.", 'Write {"has": true}.')


def _matches(_attribute: Attribute, value: Any, pointer: str) -> Found:
    if not isinstance(value, str):
        yield PolicyFinding(pointer, "when.expression", "matches takes a tool expression.", 'For example "commerce.*".')
        return
    try:
        expressions.parse(value)
    except expressions.ExpressionError as error:
        yield PolicyFinding(pointer, "when.expression", str(error), 'For example "commerce.* & ~effect:Write".')


def _equals(attribute: Attribute, value: Any, pointer: str) -> Found:
    yield from _value(attribute, value, pointer)


def _in(attribute: Attribute, value: Any, pointer: str) -> Found:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_CHOICES:
        yield PolicyFinding(pointer, "when.type", f"in takes a list of 1 to {MAX_CHOICES} values.", "Write […].")
        return
    for index, each in enumerate(value):
        yield from _value(attribute, each, f"{pointer}/{index}")


def _bound(attribute: Attribute, value: Any, pointer: str) -> Found:
    yield from _value(attribute, value, pointer)


def _contains(attribute: Attribute, value: Any, pointer: str) -> Found:
    several = isinstance(value, list)
    if several and not 1 <= len(value) <= MAX_CHOICES:
        yield PolicyFinding(pointer, "when.type", f"contains takes one value, or 1 to {MAX_CHOICES}.", "Write a text.")
        return
    for index, each in enumerate(value if several else [value]):
        yield from _value(attribute, each, f"{pointer}/{index}" if several else pointer)


def _value(attribute: Attribute, value: Any, pointer: str) -> Found:
    name = attribute.name
    match attribute.type:
        case AttributeType.FLAG:
            if not isinstance(value, bool):
                yield PolicyFinding(
                    pointer, "when.type", f"{name} is true or false, not {quote_value(value)}.", "Write true or false."
                )
        case AttributeType.NUMBER:
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53:
                yield PolicyFinding(
                    pointer, "when.type", f"{name} is a whole number, not {quote_value(value)}.", "Write a number."
                )
        case AttributeType.TOOL:
            if not isinstance(value, str) or not TOOL_ID.fullmatch(value):
                message = f"{quote_value(value)} is no tool id: it has three segments, group.package.name."
                yield PolicyFinding(pointer, "when.type", message, 'For a family use {"matches": "commerce.*"}.')
        case _:
            if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT:
                message = f"{name} is a text of 1 to {MAX_TEXT} characters, not {quote_value(value)}."
                yield PolicyFinding(pointer, "when.type", message, "Write a text in quotes.")
            elif attribute.values and value not in attribute.values:
                fix = suggest_known(value, attribute.values)
                yield PolicyFinding(pointer, "when.value", f"{name} is never {quote_value(value)}.", fix)
            elif name == "group" and not GROUP.fullmatch(value):
                message = f"{quote_value(value)} is no group: it is the first segment of a tool id."
                yield PolicyFinding(pointer, "when.type", message, 'For example "commerce".')


_COMPARISONS: dict[str, Callable[[Attribute, Any, str], Found]] = {
    "has": _has,
    "matches": _matches,
    "equals": _equals,
    "in": _in,
    "at_least": _bound,
    "at_most": _bound,
    "contains": _contains,
}


def denies_everything(document: dict[str, Any]) -> bool:
    """Whether it can be read from its rules that no call gets through, whatever else is in force."""
    rules = document["rules"]
    permits = any(rule["effect"] == RuleEffect.PERMIT for rule in rules)
    return not permits or any(rule["effect"] == RuleEffect.FORBID and not rule.get("when") for rule in rules)


def _doubts(document: dict[str, Any]) -> Found:
    rules = document["rules"]
    for index, rule in enumerate(rules):
        if not spaces.can_hold(
            conditions.build_condition(rule.get("when", {})), certainly=rule["effect"] == RuleEffect.PERMIT
        ):
            message = f"No call can ever match the rule {rule['id']}."
            fix = "Look for conditions that exclude each other, or take the rule out."
            yield PolicyFinding(f"/rules/{index}/when", "rule.never_matches", message, fix, "warning")
    for index, rule in enumerate(rules):
        if rule["effect"] == RuleEffect.FORBID and not rule.get("when"):
            message = f"The rule {rule['id']} forbids every call."
            fix = "Say which tools or agents it is about, or take the rule out."
            yield PolicyFinding(f"/rules/{index}/when", "policy.denies_all", message, fix, "warning")
    if not any(rule["effect"] == RuleEffect.PERMIT for rule in rules):
        message = "No rule permits anything, so every call is denied."
        fix = 'Add {"id": "all", "effect": "permit", "when": {}} to deny only what other rules forbid.'
        yield PolicyFinding("/rules", "policy.denies_all", message, fix, "warning")
