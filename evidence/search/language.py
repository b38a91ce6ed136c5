"""Search language: what ``tool:shop.* -code:QUOTA.* after:7d`` asks for.

A query is terms with spaces between them. A term is a qualifier and its value, or a word alone; a hyphen before it excludes. Values
with spaces stand in quotes. Terms with the same qualifier are alternatives, different ones narrow. Pure: what a term finds is said by
:mod:`evidence.search.tags`. ``parse(str(query)) == query`` holds for all queries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evidence.kinds import Kind
from evidence.problems import SearchInvalid
from kernel.ids import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from django.utils.functional import _StrPromise

MAX_CHARACTERS = 1000
MAX_TERMS = 20
MODEL = "model."  # what begins the id of a model
MIN_DIGITS = 8  # of a hash: as many as the console shows


@dataclass(frozen=True, slots=True)
class Qualifier:
    """``check`` returns the value as it is looked for, or raises ``ValueError`` with what to write instead. ``start``: the same for
    the beginning of one, with a star behind it; None: that is not understood.
    """

    means: str | _StrPromise
    example: str
    check: Callable[[str], str] = str
    start: Callable[[str], str] | None = None
    excludes: bool = True


@dataclass(frozen=True, slots=True)
class Term:
    """``name`` is empty for a word alone. ``starts``: the value is the beginning of what is looked for."""

    name: str
    value: str
    negated: bool = False
    starts: bool = False

    def __str__(self) -> str:
        plain = self.value and not re.search(r'[\s"]', self.value) and not self.value.endswith("*")
        if not self.name:
            plain = plain and not self.value.startswith("-") and (":" not in self.value or _is_known_word(self.value))
        text = self.value if plain else '"' + self.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{'-' if self.negated else ''}{self.name + ':' if self.name else ''}{text}{'*' if self.starts else ''}"


@dataclass(frozen=True, slots=True)
class Query:
    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return " ".join(str(term) for term in self.terms)

    def of(self, name: str) -> list[Term]:
        return [term for term in self.terms if term.name == name]

    def without(self, left_out: Term) -> Query:
        return Query(tuple(term for term in self.terms if term != left_out))


@dataclass(slots=True)
class _Reading:
    text: str
    known: Mapping[str, Qualifier]
    at: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)

    def complain(self, begin: int, message: str, instead: str) -> None:
        self.wrong.append({"at": begin, "length": max(self.at - begin, 1), "message": message, "instead": instead})


# What values look like.


def _id_of(prefix: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        try:
            decode(prefix, value)
        except ValueError:
            raise ValueError(_("an id like %(id)s, as pages show it") % {"id": f"{prefix}_…"}) from None
        return value

    return check


def _kind(value: str) -> str:
    if value in Kind.values:
        return value
    near = get_close_matches(value, Kind.values, n=1, cutoff=0.5)
    raise ValueError(near[0] if near else _("one of the kinds of facts, such as %(kind)s") % {"kind": "tool.enabled"})


def _answer(value: str) -> str:
    if value.lower().startswith(MODEL):
        return value.lower()
    try:
        decode("inv", value)
    except ValueError:
        raise ValueError(_("the id of a call of a model, inv_…, or of a model, model.openai.main")) from None
    return value


def _hash(value: str) -> str:
    digits = value.rpartition(":")[2].lower()
    if not re.fullmatch(rf"[0-9a-f]{{{MIN_DIGITS},64}}", digits):
        raise ValueError(_("8 to 64 digits of a hash, 0-9 and a-f"))
    return digits


def _trace(value: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{32}", value.lower()):
        raise ValueError(_("the 32 digits of a trace"))
    return value.lower()


_DAY = re.compile(r"[0-9]{4}-")
_AGO = re.compile(r"([0-9]{1,4})([mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def _moment(value: str) -> str:
    try:
        if not _AGO.fullmatch(value):
            datetime.fromisoformat(value if _DAY.match(value) else "")
    except ValueError:
        raise ValueError(_("a day as 2026-11-30, a time as 2026-11-30T14:00, or how long ago as 24h, 7d")) from None
    return value


def parse_moment(value: str, *, now: datetime, zone: tzinfo) -> datetime:
    """The moment that a value of ``before:`` and ``after:`` means. Without a zone it is in the reader's."""
    if ago := _AGO.fullmatch(value):
        return now - int(ago[1]) * _UNITS[ago[2]]
    found = datetime.fromisoformat(value)
    try:
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if found.year > now.year else datetime.min.replace(tzinfo=UTC)


def fix_days(query: Query, zone: tzinfo) -> Query:
    """The same query for whoever reads it where another zone holds: days and times without a zone are moments of ``zone``."""
    return Query(tuple(_fix_day(term, zone) if term.name in ("after", "before") else term for term in query.terms))


def _fix_day(term: Term, zone: tzinfo) -> Term:
    if _AGO.fullmatch(term.value):
        return term
    found = datetime.fromisoformat(term.value)
    return term if found.tzinfo else replace(term, value=found.replace(tzinfo=zone).isoformat())


QUALIFIERS: dict[str, Qualifier] = {
    "tool": Qualifier(gettext_lazy("name of a tool"), "tool:commerce.*", str.lower, str.lower),
    "agent": Qualifier(gettext_lazy("agent that called, by its name or id"), "agent:shopper", start=str),
    "actor": Qualifier(gettext_lazy("who did it: an agent, a person or a part of the hub"), "actor:usr_7", start=str),
    "kind": Qualifier(gettext_lazy("kind of fact"), "kind:consent.approved", _kind, str),
    "outcome": Qualifier(gettext_lazy("outcome"), "outcome:failed", str.lower),
    "verdict": Qualifier(
        gettext_lazy("decision of the policy: allowed, denied or consent"), "verdict:denied", str.lower
    ),
    "code": Qualifier(gettext_lazy("reason of a refusal or failure"), "code:QUOTA.*", str.upper, str.upper),
    "pii": Qualifier(
        gettext_lazy("class of personal data that was found in a result; any finds all"), "pii:phone", str.lower
    ),
    "policy": Qualifier(gettext_lazy("version of the policy that decided"), "policy:tenant-3", start=str),
    "subject": Qualifier(gettext_lazy("subject of a fact"), "subject:soul:tool:web.pages.read", start=str),
    "call": Qualifier(gettext_lazy("one call and everything related to it"), "call:inv_…", _id_of("inv")),
    "chain": Qualifier(gettext_lazy("a chain with its calls"), "chain:chn_…", _id_of("chn")),
    "run": Qualifier(gettext_lazy("an agent run with its calls"), "run:run_…", _id_of("run")),
    "consent": Qualifier(gettext_lazy("a consent with the calls that used it"), "consent:cns_…", _id_of("cns")),
    "proposed_by": Qualifier(
        gettext_lazy("the answer that proposed a call, or the model that gave it"),
        "proposed_by:model.openai.*",
        _answer,
        str.lower,
    ),
    "grant": Qualifier(gettext_lazy("a grant with the calls under it"), "grant:grt_…", _id_of("grt")),
    "user": Qualifier(
        gettext_lazy("the person for whom an agent called: their id, or the keyed hash of it"), 'user:"ann 7"'
    ),
    "trace": Qualifier(gettext_lazy("a trace"), "trace:4bf92f3577b34da6a3ce929d0e0e4736", _trace),
    "hash": Qualifier(
        gettext_lazy("a hash, whole or its first 8 digits: of a leaf, a value, a manifest, a build"),
        "hash:9f86d081",
        _hash,
    ),
    "after": Qualifier(gettext_lazy("from that moment on"), "after:7d", _moment, excludes=False),
    "before": Qualifier(gettext_lazy("before that moment"), "before:2026-11-30", _moment, excludes=False),
    "tenant": Qualifier(
        gettext_lazy("the tenant that you act in, and no other"), "tenant:ten_…", _id_of("ten"), excludes=False
    ),
}
# Words that have a colon and are no qualifier: they are pasted as they are.
WORDS_WITH_COLON = ("sha256:", "hmac-sha256:", "soul:", "system:")


def _is_known_word(text: str) -> bool:
    return text.startswith(WORDS_WITH_COLON)


_BARE = re.compile(r'[^\s"]*')
_NAME = re.compile(r"([A-Za-z_]+):")


def parse(text: str, known: Mapping[str, Qualifier] = QUALIFIERS) -> Query:
    """The query that ``text`` says. Raises :class:`SearchInvalid`, which names each place that is not understood.

    ``known``: the qualifiers that it may have.
    """
    reading = _Reading(text, known)
    if len(text) > MAX_CHARACTERS:
        reading.complain(MAX_CHARACTERS, _("A query has at most 1,000 characters."), _("fewer terms"))
        raise SearchInvalid.at(text[:MAX_CHARACTERS], reading.wrong)
    terms: list[Term] = []
    while True:
        while reading.at < len(text) and text[reading.at].isspace():
            reading.at += 1
        if reading.at >= len(text):
            break
        term = _term(reading)
        if term is not None and term not in terms:
            terms.append(term)
    if len(terms) > MAX_TERMS:
        reading.complain(0, _("A query has at most 20 terms."), _("fewer terms"))
    if reading.wrong:
        raise SearchInvalid.at(text, reading.wrong)
    return Query(tuple(terms))


def _term(reading: _Reading) -> Term | None:
    text, begin = reading.text, reading.at
    negated = text.startswith("-", reading.at)
    reading.at += negated
    name = ""
    if not _is_known_word(text[reading.at :]) and (found := _NAME.match(text, reading.at)):
        name, reading.at = found[1].lower(), found.end()
    value, starts = _value(reading)
    if value is None:
        reading.complain(begin, _("A quotation mark is not closed."), text[begin:] + '"')
        return None
    if name and name not in reading.known:
        near = get_close_matches(name, reading.known, n=1)
        instead = f"{near[0]}:{value}" if near else f'"{text[begin + negated : reading.at]}"'
        reading.complain(begin, _("There is no qualifier %(name)s.") % {"name": f"{name}:"}, instead)
        return None
    if not value and not (name and starts):
        message = _("%(name)s has no value.") % {"name": f"{name}:"} if name else _("A term is missing here.")
        reading.complain(begin, message, reading.known[name].example if name else '"…"')
        return None
    return _checked(reading, begin, Term(name, value, negated, starts))


def _value(reading: _Reading) -> tuple[str | None, bool]:
    """(the value, whether a star follows it). None: a quotation mark is not closed."""
    text = reading.text
    if not text.startswith('"', reading.at):
        found = _BARE.match(text, reading.at)
        assert found is not None  # it matches nothing as well
        reading.at = max(found.end(), reading.at)
        bare = found[0]
        starts = bare.endswith("*")
        return (bare[:-1] if starts else bare), starts
    said: list[str] = []
    reading.at += 1
    while reading.at < len(text):
        letter = text[reading.at]
        reading.at += 1
        if letter == '"':
            starts = text.startswith("*", reading.at)
            reading.at += starts
            return "".join(said), starts
        if letter == "\\" and reading.at < len(text):
            letter = text[reading.at]
            reading.at += 1
        said.append(letter)
    return None, False


def _checked(reading: _Reading, begin: int, term: Term) -> Term | None:
    if not term.name:
        return term
    qualifier = reading.known[term.name]
    if term.negated and not qualifier.excludes:
        instead = {"after": "before:", "before": "after:"}.get(term.name, f"{term.name}:") + term.value
        reading.complain(begin, _("%(name)s cannot be excluded.") % {"name": f"{term.name}:"}, instead)
        return None
    if term.starts:
        if qualifier.start is None:
            reading.complain(
                begin,
                _("%(name)s cannot be used with *.") % {"name": f"{term.name}:"},
                f"{term.name}:{term.value or qualifier.example.partition(':')[2]}",
            )
            return None
        return Term(term.name, qualifier.start(term.value), term.negated, starts=True)
    try:
        value = qualifier.check(term.value)
    except ValueError as wrong:
        message = _("%(term)s cannot be searched for.") % {"term": f"{term.name}:{term.value}"}
        reading.complain(begin, message, str(wrong))
        return None
    return Term(term.name, value, term.negated)
