"""Sentences: what a rule says, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext

from access.policies.attributes import ATTRIBUTES, AttributeType
from access.policies.clauses import DEFAULT_VALIDITY_S, RuleEffect
from access.policies.impact.outcomes import (
    describe_isolation,
    describe_lessening,
    describe_obligation,
    describe_value,
    format_charge,
    join_parts,
)
from kernel.components import labels, quantities
from kernel.components.capability_words import capability_texts
from kernel.components.labels import NO_VALUE
from kernel.components.limits import limit_text
from kernel.components.manifest_words import DATA_CLASS, EFFECT, RISK_LEVEL
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from access.policies.impact.analysis import Shift
    from kernel.components.labels import Text

MAX_LISTED = 8
# Of attributes whose values are words of the hub: how people read them.
VALUE_WORDS: dict[str, Mapping[str, Text]] = {
    "side_effect": EFFECT,
    "safety_class": RISK_LEVEL,
    "data_classes": DATA_CLASS,
    "origin": labels.ORIGIN,
}


def describe_rule(rule: dict[str, Any], *, currency: str) -> str:
    """One sentence: what the rule does, and to which calls. ``currency``: in which the reader's tenant is charged."""
    calls = _calls(rule.get("when", {}))
    match rule["effect"]:
        case RuleEffect.PERMIT:
            return gettext("Permits %(calls)s.") % {"calls": calls}
        case RuleEffect.FORBID:
            return gettext("Forbids %(calls)s.") % {"calls": calls}
        case RuleEffect.CONSENT:
            return _consent(rule["consent"], calls)
        case RuleEffect.CEILING:
            return gettext("Limits %(calls)s: %(bounds)s.") % {"calls": calls, "bounds": join_parts(_bounds(rule))}
        case RuleEffect.ISOLATION:
            return gettext("Runs %(calls)s isolated: %(level)s.") % {"calls": calls, "level": describe_isolation(rule)}
        case RuleEffect.OBLIGE:
            how = join_parts(describe_obligation(each) for each in rule["obligations"])
            return gettext("Changes the output of %(calls)s: %(how)s.") % {"calls": calls, "how": how}
        case RuleEffect.DEGRADE:
            how = join_parts(describe_lessening(rule))
            return gettext("Gives less to %(calls)s of models: %(how)s.") % {"calls": calls, "how": how}
        case _:
            return gettext("Charges %(amount)s for %(calls)s.") % {
                "amount": format_charge(rule["amount_micros"], currency),
                "calls": calls,
            }


def _calls(when: dict[str, Any]) -> str:
    if not when:
        return gettext("every call")
    asked = gettext(" and ").join(part for name in when for part in _conditions(name, when[name]))
    return gettext("calls where %(asked)s") % {"asked": asked}


def _consent(says: dict[str, Any], calls: str) -> str:
    said = {"calls": calls, "span": quantities.span(says.get("validity_s", DEFAULT_VALIDITY_S))}
    match says["mode"]:
        case "once":
            return gettext("Asks a person to agree to %(calls)s, each time; an answer is valid for %(span)s.") % said
        case "period":
            return gettext("Asks a person to agree to %(calls)s, for %(span)s.") % said
        case _:
            return gettext("Asks a person to agree to %(calls)s, once and for all.") % said


def _bounds(rule: dict[str, Any]) -> Iterator[str]:
    if "capabilities" in rule:
        names = Capabilities.from_json(rule["capabilities"]).names()
        yield from capability_texts(names) if names else [gettext("no capability")]
    for name, amount in rule.get("limits", {}).items():
        yield limit_text(name, amount)


def _conditions(name: str, atom: dict[str, Any]) -> Iterator[str]:
    label = str(ATTRIBUTES[name].label)
    for ask, value in atom.items():
        if ask == "not":
            inner = gettext(" and ").join(_conditions(name, value))
            yield gettext("not (%(condition)s)") % {"condition": inner}
        elif ATTRIBUTES[name].type is AttributeType.FLAG and ask == "equals":
            yield (
                gettext("“%(what)s” is true") % {"what": label}
                if value
                else gettext("“%(what)s” is not true") % {"what": label}
            )
        else:
            yield _comparison(label, ask, value, VALUE_WORDS.get(name, {}))


def _comparison(label: str, ask: str, value: Any, words: Mapping[str, Text]) -> str:
    said = {"what": label, "value": _listed(value, words)}
    match ask:
        case "equals":
            return gettext("%(what)s is %(value)s") % said
        case "in":
            return gettext("%(what)s is one of %(value)s") % said
        case "at_least":
            return gettext("%(what)s is at least %(value)s") % said
        case "at_most":
            return gettext("%(what)s is at most %(value)s") % said
        case "matches":
            return gettext("%(what)s matches %(value)s") % said
        case "contains":
            return gettext("%(what)s include %(value)s") % said
        case _:
            return gettext("%(what)s is known") % said if value else gettext("%(what)s is not known") % said


def _listed(value: Any, words: Mapping[str, Text]) -> str:
    values = value if isinstance(value, list) else [value]
    shown = gettext(", ").join(str(words.get(str(each), each)) for each in values[:MAX_LISTED])
    more = len(values) - MAX_LISTED
    return shown + (ngettext(" and %(n)d more", " and %(n)d more", more) % {"n": more} if more > 0 else "")


def describe_witness(seen: dict[str, Any]) -> list[tuple[str, str]]:
    """The attributes of a call, each with its value, as people read them."""
    said = []
    for name, value in seen.items():
        attribute = ATTRIBUTES[name]
        if attribute.type is AttributeType.FLAG:
            text = gettext("yes") if value else gettext("no")
        else:
            text = "" if value is None else _listed(value, VALUE_WORDS.get(name, {}))
        said.append((str(attribute.label), text or NO_VALUE))
    return said


def shift_sentence(shift: Shift, *, currency: str) -> str:
    """What changes for calls like the witness."""
    heads = {
        "call": gettext("Calls like this were %(before)s and become %(after)s."),
        "consent": gettext("Consent: %(before)s becomes %(after)s."),
        "ceiling": gettext("Bounds: %(before)s becomes %(after)s."),
        "isolation": gettext("Isolation: %(before)s becomes %(after)s."),
        "oblige": gettext("Obligations: %(before)s becomes %(after)s."),
        "price": gettext("Price: %(before)s becomes %(after)s."),
        "degrade": gettext("Models: %(before)s becomes %(after)s."),
    }
    said = {
        "before": describe_value(shift.aspect, shift.before, currency=currency),
        "after": describe_value(shift.aspect, shift.after, currency=currency),
    }
    return heads[shift.aspect] % said
