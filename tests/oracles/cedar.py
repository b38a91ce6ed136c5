"""Cedar: what does Cedar say about a policy and a call?

The document is translated into Cedar's own text, independently of the compiler. Cedar skips a policy in which an attribute is
missing; here a rule that restricts then holds all the same, so what restricts is written as "not certainly false".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import cedarpy

from unitools import expressions

if TYPE_CHECKING:
    from collections.abc import Iterable

HEAD = "(principal, action, resource)"
SIMPLE = {"equals", "in", "at_least", "at_most", "contains"}


def _plain(name: str, ask: str, value: Any) -> str:
    text = json.dumps(value)
    match ask:
        case "equals":
            return f"context.{name} == {text}"
        case "in":
            return f"{text}.contains(context.{name})"
        case "at_least":
            return f"context.{name} >= {text}"
        case "at_most":
            return f"context.{name} <= {text}"
        case "contains":
            return " && ".join(f"context.{name}.contains({json.dumps(v)})" for v in _several(value))
        case _:
            raise AssertionError(ask)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _surely(name: str, test: str, *, holds: bool) -> str:
    return f"(context has {name} && {test if holds else f'!({test})'})"


def _join(parts: Iterable[str], *, every: bool) -> str:
    found = list(parts)
    if not found:
        return "true" if every else "false"
    return "(" + (" && " if every else " || ").join(found) + ")"


def _expression(e: expressions.Expression, *, holds: bool) -> str:
    match e:
        case expressions.Exact():
            return _surely("tool", f"context.tool == {json.dumps(e.id)}", holds=holds)
        case expressions.Prefix():
            return _surely("tool", f"context.tool like {json.dumps(e.prefix + '.*')}", holds=holds)
        case expressions.Tag():
            return _surely("tags", f"context.tags.contains({json.dumps(e.name)})", holds=holds)
        case expressions.Effect():
            return _surely("side_effect", f"context.side_effect == {json.dumps(e.name)}", holds=holds)
        case expressions.Safety():
            return _surely("safety_class", f"context.safety_class == {json.dumps(e.name)}", holds=holds)
        case expressions.Domain():
            return _surely("domains", f"context.domains.contains({json.dumps(e.name)})", holds=holds)
        case expressions.Not():
            return _expression(e.part, holds=not holds)
        case expressions.And() | expressions.Or():
            every = isinstance(e, expressions.And) is holds
            return _join((_expression(part, holds=holds) for part in e.parts), every=every)
        case _:
            return "true" if holds else "false"


def _atom(name: str, ask: str, value: Any, *, holds: bool) -> str:
    """When it certainly holds, or certainly does not."""
    if ask == "has":
        return f"context has {name}" if value is holds else f"!(context has {name})"
    if ask == "not":
        return _atoms(name, value, holds=not holds)
    if ask == "matches":
        return _expression(expressions.parse(value), holds=holds)
    return _surely(name, _plain(name, ask, value), holds=holds)


def _atoms(name: str, atom: dict[str, Any], *, holds: bool) -> str:
    return _join((_atom(name, ask, value, holds=holds) for ask, value in atom.items()), every=holds)


def policy_of(rule: dict[str, Any], word: str) -> str:
    """One rule as Cedar text that permits or forbids."""
    when = rule.get("when", {})
    if word == "permit" and all(set(atom) <= SIMPLE for atom in when.values()):
        # Cedar's own handling of what is missing: an error, and the policy is skipped.
        parts = [_plain(name, ask, value) for name, atom in when.items() for ask, value in atom.items()]
        condition = _join((f"({part})" for part in parts), every=True)
    elif word == "permit":
        condition = _join((_atoms(name, atom, holds=True) for name, atom in when.items()), every=True)
    else:
        no = _join((_atoms(name, atom, holds=False) for name, atom in when.items()), every=False)
        condition = f"!{no}" if no.startswith("(") else f"!({no})"
    return f'@id("{rule["id"]}") {word}{HEAD} when {{ {condition} }};'


class Oracle:
    """Cedar's answers for one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        rules = document["rules"]
        decides = [policy_of(rule, rule["effect"]) for rule in rules if rule["effect"] in ("permit", "forbid")]
        restricts = [policy_of(rule, "forbid") for rule in rules if rule["effect"] not in ("permit", "forbid")]
        self._decides = cedarpy.PolicySet.from_str("\n".join(decides))
        self._restricts = cedarpy.PolicySet.from_str("\n".join(restricts))

    def decisions(self, calls: list[dict[str, Any]]) -> list[tuple[bool, set[str]]]:
        """For each call whether it is allowed, and the rules that decided."""
        return [(found.allowed, _ids(found)) for found in _asked(calls, self._decides)]

    def restrictions(self, calls: list[dict[str, Any]]) -> list[set[str]]:
        """For each call the matching rules that neither permit nor forbid."""
        return [_ids(found) for found in _asked(calls, self._restricts)]


def _asked(calls: list[dict[str, Any]], policies: Any) -> list[cedarpy.AuthzResult]:
    who = {"principal": 'Agent::"a"', "action": 'Action::"call"', "resource": 'Tool::"t"'}
    requests = [who | {"context": {k: v for k, v in call.items() if v is not None}} for call in calls]
    return cedarpy.is_authorized_batch(requests, policies, [])


def _ids(found: cedarpy.AuthzResult) -> set[str]:
    return set(found.diagnostics.id_annotations_by_reason.values())
