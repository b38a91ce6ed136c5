"""Tags: by which a fact is found, and which a term of a query asks for.

A tag is ``name:value`` in UTF-8. Hashes, traces and ids are most of the index, since each call has its own, so their tags are a byte
and what their letters stand for; before, they were written out, and what was indexed then is still asked for so. What a call is (its
agent, tool, chain, consent, user, the answer that proposed it) is in its first facts only; those that follow inherit it, so that a
timeline of an agent or a chain has all of them. A term asks for spans of tags: one tag, or all with a beginning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from evidence.kinds import BEGINS, Kind
from evidence.leaves import find_leaf_type
from kernel.ids import read_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evidence.search.language import Query, Term

# Facts of a call that say what it is. Later ones of them replace what the earlier said.
SAYS_WHAT_IT_IS = (*BEGINS, Kind.INVOCATION_HELD, Kind.INVOCATION_RESUMED, Kind.CONSENT_USED)
# What the first facts of a call say of all of them.
OF_THE_CALL = ("chain", "run", "consent", "user", "proposed_by")
HASH_DIGITS = 20  # of 64: enough to tell hashes apart, and each of them is a row of the index
_MAX_VALUE = 200
_WIRE_ID = re.compile(r"(?!ten_)[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}|usr_[0-9]{1,18}")
_WITH_LETTERS = re.compile(r"[a-z]{3}_([0-7][0-9a-hjkmnp-tv-z]{25})")
_DIGITS = re.compile(r"(?:[a-z0-9-]{1,24}:)?([0-9a-f]{64})")
_HEXADECIMAL = re.compile(r"(?:[a-z0-9-]{1,24}:)?([0-9a-fA-F]{8,64})")
TOOL_URN = "soul:tool:"


# No text begins with these bytes.
SHORT = {"hash": b"\1", "trace": b"\2", "id": b"\3"}
# Of what was indexed while the archive did not give what it has of it: it is looked at again.
UNREAD_TAG = b"\4"
_SHORT_DIGITS = re.compile(r"(?:[0-9a-f]{2})+")


def make_tag(name: str, value: str) -> bytes:
    if name == "id":
        if found := _WITH_LETTERS.fullmatch(value):
            return SHORT[name] + read_letters(found[1]).to_bytes(16)
    elif name in SHORT and _SHORT_DIGITS.fullmatch(value):
        return SHORT[name] + bytes.fromhex(value)
    return _write_out(name, value)


def call_tag(invocation_id: UUID) -> bytes:
    """The id of the call that a fact is about. The index leaves it out: those facts are found by their column."""
    return SHORT["id"] + invocation_id.bytes


def list_calls(spans: Iterable[TagSpan]) -> set[UUID]:
    """Those whose ids are asked for."""
    return {UUID(bytes=span.low[1:]) for span in spans if span.is_of_call}


def _write_out(name: str, value: str) -> bytes:
    return f"{name}:{value[:_MAX_VALUE]}".encode()


# What a fact has.


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            if name != "request_id":  # hashed, so nobody has it to paste
                yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _tool_of(leaf: dict[str, Any]) -> str:
    subject: str = leaf.get("subject", "")
    return leaf.get("tool", "") or (subject.removeprefix(TOOL_URN) if subject.startswith(TOOL_URN) else "")


def call_traits(said: Iterable[dict[str, Any]]) -> dict[str, str]:
    """What the first facts of a call, in their order, say of the whole call."""
    found: dict[str, str] = {}
    for leaf in said:
        if leaf.get("kind") in BEGINS:
            found |= {"agent": leaf.get("actor", {}).get("id", ""), "tool": leaf.get("tool", "")}
        if leaf.get("kind") == Kind.CONSENT_USED:
            found["consent"] = leaf["subject"]
        found |= {name: value for name, value in list_search_terms(leaf) if name in OF_THE_CALL}
    return found


def list_search_terms(leaf: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Qualifier and text of what the fields of its type are found by (:mod:`evidence.leaves`)."""
    return find_leaf_type(leaf.get("kind", "")).list_search_terms(leaf.get("data"))


def compute_tags(leaf: dict[str, Any], leaf_hash: bytes, call: dict[str, str]) -> set[bytes]:
    """All tags of a fact. ``call``: :func:`call_traits` of the call that it belongs to, empty for others."""
    actor: str = leaf.get("actor", {}).get("id", "")
    subject, tool = leaf.get("subject", ""), _tool_of(leaf) or call.get("tool", "")
    said = list(list_search_terms(leaf))
    agents = {call.get("agent", ""), actor, subject, *(text for name, text in said if name == "agent")}
    named = [
        ("kind", leaf.get("kind", "")),
        ("tool", tool),
        ("actor", actor),
        ("outcome", leaf.get("outcome", "")),
        ("code", leaf.get("reason", "")),
        ("subject", "" if subject == leaf.get("invocation") else subject),  # a call is found by its id
        ("trace", leaf.get("trace", "")),
        ("user", call.get("user", "")),
        ("id", call.get("chain", "")),
        ("id", call.get("run", "")),
        ("id", call.get("consent", "")),
        *(("proposed_by", each) for each in call.get("proposed_by", "").split()),
        *(("agent", each) for each in agents if isinstance(each, str) and each.startswith("agt_")),
        *(("word", part) for part in tool.split(".")),
        *((name, text) for name, text in said if name not in ("agent", "chain", "run", "consent", "proposed_by")),
    ]
    found = {make_tag(name, value) for name, value in named if isinstance(value, str) and value}
    found.add(make_tag("hash", leaf_hash.hex()[:HASH_DIGITS]))
    for text in _strings({name: value for name, value in leaf.items() if name not in ("id", "trace")}):
        if len(text) >= 64 and (digits := _DIGITS.fullmatch(text)):
            found.add(make_tag("hash", digits[1][:HASH_DIGITS]))
        elif text[3:4] == "_" and _WIRE_ID.fullmatch(text):
            found.add(make_tag("id", text))
    return found


# What a term asks for.


@dataclass(frozen=True, slots=True)
class TagSpan:
    """Tags from ``low`` up to, and without, ``high``. ``low`` alone, when that is the next one. ``is_of_call``: it is a call's id."""

    low: bytes
    high: bytes
    is_of_call: bool = False

    @property
    def is_one(self) -> bool:
        return self.high == self.low + b"\0"

    def holds(self, tag: bytes) -> bool:
        return self.low <= tag < self.high


def exact_span(name: str, value: str) -> TagSpan:
    return _only(make_tag(name, value))


def exact_spans(name: str, value: str) -> list[TagSpan]:
    """Of what may have been indexed when its tag was written out."""
    tag, written_out = make_tag(name, value), _write_out(name, value)
    if tag == written_out:
        return [_only(tag)]
    return [_only(tag, is_of_call=name == "id" and value.startswith("inv_")), _only(written_out)]


def _only(tag: bytes, *, is_of_call: bool = False) -> TagSpan:
    return TagSpan(tag, tag + b"\0", is_of_call)


def prefix_span(name: str, value: str) -> TagSpan:
    low = _write_out(name, value)
    return TagSpan(low, low + b"\xff")  # which no UTF-8 has


def _digits_span(name: str, digits: str) -> TagSpan:
    """What begins with these digits."""
    low, high = (bytes.fromhex(f"{digits}{last * (len(digits) % 2)}") for last in "0f")
    return TagSpan(SHORT[name] + low, SHORT[name] + high + b"\xff" * HASH_DIGITS)


def merge_spans(spans: Iterable[TagSpan]) -> list[TagSpan]:
    """Spans that have the same tags, of which none has a tag of another."""
    merged: list[TagSpan] = []
    for span in sorted(spans, key=lambda span: span.low):
        if merged and span.low < merged[-1].high:
            merged[-1] = TagSpan(merged[-1].low, max(merged[-1].high, span.high))
        else:
            merged.append(TagSpan(span.low, span.high))
    return merged


@dataclass(frozen=True, slots=True)
class NameLookups:
    """What only apps above this one know. ``agents``: the ids of those whose name is this, or begins with it."""

    agents: Callable[[str, bool], list[str]] = lambda name, starts: []  # noqa: ARG005
    user: Callable[[str], str] = str  # the keyed hash of a person's id


@dataclass(slots=True)
class TagQuery:
    """Each of ``wanted`` must be met by one of its spans, and none of ``unwanted`` may be."""

    wanted: list[list[TagSpan]] = field(default_factory=list)
    unwanted: list[TagSpan] = field(default_factory=list)

    def met_by(self, tags: set[bytes]) -> bool:
        return all(any(span.holds(tag) for span in spans for tag in tags) for spans in self.wanted) and not any(
            span.holds(tag) for span in self.unwanted for tag in tags
        )

    @property
    def spans(self) -> list[TagSpan]:
        return [*self.unwanted, *(span for spans in self.wanted for span in spans)]


def without_unwanted_kinds(asked: TagQuery) -> TagQuery:
    """The same, asked otherwise: a fact has one kind, so one that is not of these has another. Where most facts are of these, what has
    another is much less to read."""
    begin, end = make_tag("kind", ""), prefix_span("kind", "").high
    kinds = sorted((span for span in asked.unwanted if span.low.startswith(begin)), key=lambda span: span.low)
    if not kinds:
        return asked
    others, at = list[TagSpan](), begin
    for span in [*kinds, TagSpan(end, end)]:
        if at < span.low:
            others.append(TagSpan(at, span.low))
        at = max(at, span.high)
    return TagQuery([*asked.wanted, others], [span for span in asked.unwanted if span not in kinds])


ID_QUALIFIERS = ("call", "chain", "run", "consent", "grant")


def build_tag_query(query: Query, names: NameLookups) -> TagQuery:
    asked, alternatives = TagQuery(), dict[str, list[TagSpan]]()
    for term in query.terms:
        if term.name in ("after", "before", "tenant"):
            continue
        spans = term_spans(term, names)
        if term.negated:
            asked.unwanted += spans
        elif term.name:
            alternatives.setdefault(term.name, []).extend(spans)
        else:
            asked.wanted.append(spans)
    asked.wanted += alternatives.values()
    return asked


def term_spans(term: Term, names: NameLookups) -> list[TagSpan]:
    named = prefix_span if term.starts else exact_span
    match term.name:
        case "":
            return _of_word(term, names)
        case "hash":
            return _of_hash(term.value)
        case "agent":
            ids = [term.value] if term.value.startswith("agt_") else names.agents(term.value, term.starts)
            return [(named if id == term.value else exact_span)("agent", id) for id in ids]
        case "user":
            return [exact_span("user", names.user(term.value))]
        case "trace":
            return exact_spans("trace", term.value)
        case "proposed_by":
            return [named("proposed_by", term.value)]
        case name if name in ID_QUALIFIERS or term.value.startswith("inv_"):
            return exact_spans("id", term.value)
        case name:
            return [named(name, term.value)]


def _of_hash(digits: str) -> list[TagSpan]:
    if len(digits) >= HASH_DIGITS:
        return exact_spans("hash", digits[:HASH_DIGITS])
    return [_digits_span("hash", digits), prefix_span("hash", digits)]


def _of_word(term: Term, names: NameLookups) -> list[TagSpan]:
    """A name, or the id of anything, pasted."""
    word, named = term.value, prefix_span if term.starts else exact_span
    if word.startswith("system:"):
        return [named("actor", word)]
    if word.startswith("soul:"):
        return [named("subject", word)]
    if _WIRE_ID.fullmatch(word):
        return [*exact_spans("id", word), exact_span("agent", word)]
    found = [named("word", word.lower()), named("kind", word.lower()), named("code", word.upper())]
    found.append(prefix_span("tool", word.lower()) if term.starts or "." in word else exact_span("tool", word.lower()))
    found += [exact_span("agent", id) for id in names.agents(word, term.starts)]
    if digits := _HEXADECIMAL.fullmatch(word):
        found += _of_hash(digits[1].lower())
        if len(digits[1]) == 32:
            found += exact_spans("trace", digits[1].lower())
    return found
