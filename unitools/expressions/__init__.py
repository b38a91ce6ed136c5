"""Expressions: the tools that one names.

``commerce.* & ~tag:beta | effect:Read`` as a value: hashable, printable, parseable, JSON-able. Atoms are ``*``, an exact id
``a.b.c``, a prefix ``a.*`` or ``a.b.*``, ``tag:x``, ``effect:Read``, ``safety:Low`` and ``domain:net``, and of a Universe
``name:x`` and ``name:x*`` (:mod:`unitools.expressions.name_atoms`); ``~`` binds tighter than ``&``, and ``&`` tighter than
``|``. Equal
sets of words have equal forms: parts are flat, sorted and there once, so ``parse(str(e)) == e`` for everything
that the operators build within the bounds.
"""

from unitools.expressions.containment import TooEntangledError, find_tool_beyond
from unitools.expressions.parser import MAX_LENGTH, MAX_NESTING, ExpressionError, from_json, parse, parse_cached
from unitools.expressions.values import (
    DOMAINS,
    EFFECTS,
    SAFETY_CLASSES,
    And,
    Domain,
    Effect,
    Everything,
    Exact,
    Expression,
    Not,
    Or,
    Prefix,
    Safety,
    Subject,
    Tag,
    all_of,
    any_of,
    build_subject,
    compute_specificity,
)

__all__ = [
    "DOMAINS",
    "EFFECTS",
    "MAX_LENGTH",
    "MAX_NESTING",
    "SAFETY_CLASSES",
    "And",
    "Domain",
    "Effect",
    "Everything",
    "Exact",
    "Expression",
    "ExpressionError",
    "Not",
    "Or",
    "Prefix",
    "Safety",
    "Subject",
    "Tag",
    "TooEntangledError",
    "all_of",
    "any_of",
    "build_subject",
    "compute_specificity",
    "find_tool_beyond",
    "from_json",
    "parse",
    "parse_cached",
]
