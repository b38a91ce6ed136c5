"""Leaf types: what they have in common, how one becomes the data that is hashed, and how one is read back.

A field without a default is always written; one with a default is left out while it holds that (``None``, or ``ABSENT`` where
``null`` says something of its own). A field whose name is a word of Python has an underscore behind it, which the leaf has not.
Reading takes what is there: fields that this code does not know are passed over, and one that older code did not write reads as
its default, or as ``ABSENT`` when it has none, whatever its type says.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from evidence.kinds import Kind

LEAF_VERSION = 2  # what the versions differ in: VERSIONS
VERSIONS = (
    (
        "1",
        "as 2, but reasons, purposes and notes in the clear; `request_id` and `proposal` as they were sent; no `level`, "
        "`consent_binds`, `budget`, `error`, `logs`",
    ),
    ("2", "what people write is in `words`; what a caller or a tool names by itself is hashed"),
)
FORMS = (
    "`commit`: SHA-256(salt ‖ bytes) of a sealed value; `alg` says which bytes: `sha256-jcs` (canonical JSON) or, for what I-JSON "
    "has not (integers beyond 2^53, for one), `sha256-raw` (compact sorted JSON). `hmac-sha256:…`: keyed with the key of the "
    "person whom the call is made for; equal texts can be told while that person is known, and by nobody once they are erased. "
    "`sha256:…`: of what is no personal data."
)


class _Absent:
    """No value at all; false, like an empty one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()


class SearchTerm(NamedTuple):
    """Of a field: the qualifier of the search language under which its text is found."""

    qualifier: str


class LeafField(NamedTuple):
    """A field as the reference page shows it. ``always``: whether each leaf has it."""

    key: str
    doc: str
    always: bool


class _Planned(NamedTuple):
    """How one field is written and read. ``part``: the type of an object within the leaf."""

    name: str
    key: str
    default: Any
    part: type[LeafPart] | None


class LeafPart:
    """An object within a leaf."""

    __slots__ = ()
    PLAN: ClassVar[tuple[_Planned, ...]] = ()
    # Key, qualifier, and the type of an object that has terms of its own.
    TERMS: ClassVar[tuple[tuple[str, str, type[LeafPart] | None], ...]] = ()

    def to_data(self) -> dict[str, Any]:
        """What is written: the bytes of a leaf are the canonical JSON of it."""
        found: dict[str, Any] = {}
        for name, key, default, part in self.PLAN:
            value = getattr(self, name)
            if value is not default and value is not ABSENT:
                found[key] = value if part is None else value.to_data()
        return found

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """What a leaf says, whichever code has written it."""
        known: dict[str, Any] = data if isinstance(data, dict) else {}
        found: dict[str, Any] = {}
        for name, key, default, part in cls.PLAN:
            value = known.get(key, default)
            if part is not None and value is not default:
                value = part.from_data(value) if isinstance(value, dict) else default
            found[name] = value
        return cls(**found)

    @classmethod
    def list_search_terms(cls, data: Any) -> Iterator[tuple[str, str]]:
        """Qualifier and text of each field by which a fact is found, straight from what the leaf says: the index reads millions."""
        if not isinstance(data, dict):
            return
        for key, qualifier, part in cls.TERMS:
            value = data.get(key)
            if part is not None:
                yield from part.list_search_terms(value)
            elif isinstance(value, str) and value:
                yield qualifier, value
        yield from cls.list_derived_terms(data)

    @staticmethod
    def list_derived_terms(data: dict[str, Any]) -> Iterable[tuple[str, str]]:  # noqa: ARG004
        """Terms that are no field's own text."""
        return ()

    @classmethod
    def list_fields(cls) -> list[LeafField]:
        """For the reference page; the fields of an object stand below it, with its name before theirs."""
        hints = get_type_hints(cls, include_extras=True)
        found = []
        for name, key, default, part in cls.PLAN:
            doc = next((note for note in getattr(hints[name], "__metadata__", ()) if isinstance(note, str)), "")
            found.append(LeafField(key, doc, default is ABSENT and not _has_default(cls, name)))
            if part is not None and not issubclass(part, Commitment):
                found += [each._replace(key=f"{key}.{each.key}") for each in part.list_fields()]
        return found


def _has_default(cls: type[LeafPart], name: str) -> bool:
    return any(each.name == name and each.default is not MISSING for each in fields(cast("Any", cls)))


def _find_part(hint: Any) -> type[LeafPart] | None:
    """The type of an object, in ``Part``, ``Part | None`` and ``Annotated`` of them."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    choices = get_args(hint) if get_origin(hint) not in (list, dict) else ()
    return next((each for each in (hint, *choices) if isinstance(each, type) and issubclass(each, LeafPart)), None)


P = TypeVar("P", bound=LeafPart)


def _plan_fields(cls: type[P]) -> type[P]:
    """Work out once what each leaf of the type is written and read by."""
    hints = get_type_hints(cls, include_extras=True)
    plan, terms = list[_Planned](), list[tuple[str, str, type[LeafPart] | None]]()
    for each in fields(cast("Any", cls)):
        key, part = each.name.removesuffix("_"), _find_part(hints[each.name])
        plan.append(_Planned(each.name, key, ABSENT if each.default is MISSING else each.default, part))
        notes = getattr(hints[each.name], "__metadata__", ())
        qualifier = next((note.qualifier for note in notes if isinstance(note, SearchTerm)), "")
        if qualifier:
            terms.append((key, qualifier, None))
        elif part is not None and (part.TERMS or part.list_derived_terms is not LeafPart.list_derived_terms):
            terms.append((key, "", part))
    cls.PLAN, cls.TERMS = tuple(plan), tuple(terms)
    return cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
def leaf_part(cls: type[P]) -> type[P]:
    """Make a class the type of an object within leaves. That nobody changes one is checked by mypy and costs nothing; a dataclass
    that is frozen at run time takes four times as long to make.
    """
    return _plan_fields(dataclass(slots=True, kw_only=True)(cls))


@leaf_part
class Commitment(LeafPart):
    """What binds a sealed value."""

    commit: Annotated[str, "SHA-256 over salt and bytes"]
    alg: Annotated[str, "which bytes"]
    bytes: Annotated[int, "how many"]
    snapshot: Annotated[str, "the sealed value"]


@leaf_part
class SealedWords(Commitment):
    """What a person wrote, sealed."""

    of: Annotated[list[str], "which texts: reason, purpose, note"]


@leaf_part
class ListDigest(LeafPart):
    """What stands for a list that is too long for a leaf."""

    count: Annotated[int, "how many"]
    hash: Annotated[str, "of all of them"]


@leaf_part
class LeafData(LeafPart):
    """What facts of a kind say beside what every fact says."""

    words: Annotated[
        SealedWords | None,
        "what a person wrote: `of` names the texts (reason, purpose, note), `commit` binds them, `snapshot` holds them sealed",
    ] = None


D = TypeVar("D", bound=LeafData)
LEAF_TYPES: dict[str, type[LeafData]] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True)
def leaf_data(*kinds: Kind) -> Callable[[type[D]], type[D]]:
    """Make a class the type of what facts of these kinds say. Each kind has one at most."""

    def register(cls: type[D]) -> type[D]:
        made = leaf_part(cls)
        for kind in kinds:
            assert kind not in LEAF_TYPES, f"{kind} has a type already."
            LEAF_TYPES[kind] = made
        return made

    return register


def find_leaf_type(kind: str) -> type[LeafData]:
    """What facts of this kind say; of those that say nothing of their own, and of kinds that nobody knows, the common fields."""
    return LEAF_TYPES.get(kind, LeafData)


# What a person wrote. :func:`evidence.services.record` seals it, and the leaf commits to it in ``words``.
Written = Annotated[
    str, "what a person wrote; sealed in `words`, and in the clear only while it is empty, or in version 1"
]
# The same, of facts that say nothing of it when nobody wrote anything.
MaybeWritten = Annotated[str | None, "what a person wrote; sealed in `words`, and in the clear only in version 1"]


@leaf_part
class Actor(LeafPart):
    """Who did it."""

    kind: Annotated[str, "`user`, `agent` or `system`"]
    id: Annotated[str, "of the person or agent, or the name of a part of the hub"]
    key: Annotated[str | None, "of an agent"] = None
    issuer: Annotated[str | None, "identity provider of an agent"] = None
    token: Annotated[str | None, "digest of the identity provider's token"] = None
    connection: Annotated[str | None, "of a program that acts as the agent because a person has let it"] = None
    via: Annotated[str | None, "`command` when somebody with a shell did it in a person's name"] = None


@leaf_part
class Leaf(LeafPart):
    """What every fact says."""

    v: Annotated[int, "version of the leaf's shape"]
    id: Annotated[str, "of the fact"]
    kind: Annotated[str, "see above"]
    at: Annotated[str, "when it happened, by the clock of the process"]
    tenant: Annotated[str, "whose log it is in"]
    subject: Annotated[str, "what it is about"]
    actor: Annotated[Actor, "who did it"]
    invocation: Annotated[str | None, "the call that it belongs to"] = None
    tool: Annotated[str | None, "by name"] = None
    outcome: Annotated[str | None, "how it went; of an End the final state"] = None
    reason: Annotated[str | None, "code of the problem"] = None
    trace: Annotated[str | None, "id of the trace (W3C)"] = None
    data: Annotated[dict[str, Any] | None, "what the kind says beside that"] = None

    def read_data(self, cls: type[D]) -> D:
        """What the kind says, in its type, or in one that has some of its fields."""
        return cls.from_data(self.data)
