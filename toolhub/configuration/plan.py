"""Plan: what would change if a file were applied.

Pure: two documents in one form give a list of changes. What the file leaves out is left alone, unless its section is pruned.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernel.canonical import compute_digest, encode_hash_input
from toolhub.configuration.document import POLICY, SECTIONS, format_identity
from toolhub.configuration.normal_form import parse_moment
from toolhub.configuration.sentences import describe_change

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from toolhub.configuration.document import ConfigurationEntry, Entries


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    END = "end"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """``before`` and ``after`` have the fields that differ; all of them when the thing is new or ends."""

    section: str
    key: str
    action: Action
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    wanted: ConfigurationEntry | None
    current: ConfigurationEntry | None

    @property
    def pointer(self) -> str:
        """Where the file says so; its section when it is about what the file leaves out."""
        return self.wanted.pointer if self.wanted else f"/{self.section}"

    @property
    def sentence(self) -> str:
        return describe_change(self)

    @property
    def replaces(self) -> bool:
        """Whether a grant must be given anew: its terms are what was given, and only its end and its limits can move."""
        before, after = self.before or {}, self.after or {}
        if set(after) - {"expires_at", "limits"}:
            return True
        return "expires_at" in after and not _is_later(before["expires_at"], after["expires_at"])

    def to_json(self) -> dict[str, Any]:
        return {
            "section": self.section,
            "key": self.key,
            "action": str(self.action),
            "pointer": self.pointer,
            "before": self.before,
            "after": self.after,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class ConfigurationPlan:
    """The changes of one tenant, in the order of sections. Its digest is of what would be done, whoever looks at it."""

    tenant: str
    changes: list[ConfigurationChange]
    warnings: list[str] = field(default_factory=list)

    @property
    def doing(self) -> list[ConfigurationChange]:
        return [change for change in self.changes if change.action is not Action.SAME]

    @property
    def is_empty(self) -> bool:
        return not self.doing

    @cached_property
    def counts(self) -> dict[str, int]:
        found = Counter(change.action for change in self.changes)
        return {str(action): found[action] for action in Action}

    def by_section(self) -> dict[str, dict[str, int]]:
        found = Counter((change.section, str(change.action)) for change in self.doing)
        sections: dict[str, dict[str, int]] = {}
        for (section, action), count in sorted(found.items()):
            sections.setdefault(section, {})[action] = count
        return sections

    @cached_property
    def digest(self) -> str:
        doing = [[change.section, change.key, str(change.action), change.before, change.after] for change in self.doing]
        return compute_digest({"tenant": self.tenant, "changes": doing})


def compare_entries(current: Entries, wanted: Entries, prune: Collection[str] = ()) -> list[ConfigurationChange]:
    """What makes ``current`` say what ``wanted`` says, section by section; nothing about sections that are not in it."""
    return [
        change
        for name in SECTIONS
        if name in wanted
        for change in _section(name, current.get(name, []), wanted[name], prune=name in prune)
    ]


def _section(
    name: str, current: list[ConfigurationEntry], wanted: list[ConfigurationEntry], *, prune: bool
) -> Iterator[ConfigurationChange]:
    here, there = _by_identity(current), _by_identity(wanted)
    for identity in sorted({*here, *there}, key=lambda each: [str(part) for part in each]):
        pairs = _paired(here.get(identity, []), there.get(identity, []))
        for number, (now, then) in enumerate(pairs, 1):
            key = (format_identity(identity) or name) + (f" ({number})" if len(pairs) > 1 else "")
            if then is not None or prune:
                yield _change(name, key, now, then)


def _by_identity(entries: list[ConfigurationEntry]) -> dict[tuple[Any, ...], list[ConfigurationEntry]]:
    found: dict[tuple[Any, ...], list[ConfigurationEntry]] = defaultdict(list)
    for entry in entries:
        found[entry.identity].append(entry)
    return found


def _paired(
    current: list[ConfigurationEntry], wanted: list[ConfigurationEntry]
) -> list[tuple[ConfigurationEntry | None, ConfigurationEntry | None]]:
    """Who is meant by whom, where several have one identity: first those that agree, then the others in order of content."""
    rows, pairs, others = sorted(current, key=_content), [], []
    alike: dict[
        tuple[str, ...], dict[bytes, list[ConfigurationEntry]]
    ] = {}  # by the fields that are said, and what they say
    met_already: set[int] = set()
    for entry in sorted(wanted, key=_content):
        names = _compared(entry)
        if names not in alike:
            alike[names] = defaultdict(list)
            for row in reversed(rows):
                alike[names][_written(row, names)].append(row)
        same = alike[names][_written(entry, names)]
        while same and id(same[-1]) in met_already:
            same.pop()
        if same:
            met_already.add(id(same[-1]))
            pairs.append((same.pop(), entry))
        else:
            others.append(entry)
    left = [row for row in rows if id(row) not in met_already]
    met = list(zip(left, others, strict=False))
    rest: list[tuple[ConfigurationEntry | None, ConfigurationEntry | None]] = [
        (each, None) for each in left[len(met) :]
    ]
    rest += [(None, each) for each in others[len(met) :]]
    return [*pairs, *met, *rest]


def _content(entry: ConfigurationEntry) -> bytes:
    return encode_hash_input(entry.fields)[1]


def _compared(wanted: ConfigurationEntry) -> tuple[str, ...]:
    """The fields that it says and that change something."""
    section = SECTIONS[wanted.section]
    return tuple(name for name in section.fields if name in wanted.fields and name not in section.silent)


def _written(entry: ConfigurationEntry, names: tuple[str, ...]) -> bytes:
    return encode_hash_input([entry.get(name) for name in names])[1]


def find_differing_fields(current: ConfigurationEntry, wanted: ConfigurationEntry) -> list[str]:
    """The fields that the wanted one says differently. Compared as JSON, in which true is not 1."""
    return [name for name in _compared(wanted) if _written(current, (name,)) != _written(wanted, (name,))]


def _change(
    name: str, key: str, current: ConfigurationEntry | None, wanted: ConfigurationEntry | None
) -> ConfigurationChange:
    if current is None and wanted is not None:
        return ConfigurationChange(name, key, Action.CREATE, None, _describe_entry(wanted), wanted, None)
    if wanted is None and current is not None:
        return ConfigurationChange(name, key, Action.END, _describe_entry(current), None, None, current)
    assert current is not None
    assert wanted is not None
    fields = find_differing_fields(current, wanted)
    if not fields:
        return ConfigurationChange(name, key, Action.SAME, None, None, wanted, current)
    if name == POLICY:
        before, after = _rules_apart(current.fields["document"], wanted.fields["document"])
        return ConfigurationChange(name, key, Action.CHANGE, before, after, wanted, current)
    before = {each: current.get(each) for each in fields}
    return ConfigurationChange(
        name, key, Action.CHANGE, before, {each: wanted.get(each) for each in fields}, wanted, current
    )


def _is_later(before: str | None, after: str | None) -> bool:
    """None: never."""
    if before is None or after is None:
        return before is not None
    was, will_be = parse_moment(before), parse_moment(after)
    return was is not None and will_be is not None and will_be > was


def _describe_entry(entry: ConfigurationEntry) -> dict[str, Any]:
    if entry.section == POLICY:
        return _rules_apart({}, entry.fields["document"])[1]
    return {name: entry.get(name) for name in SECTIONS[entry.section].fields if name in entry.fields}


def _rules_apart(before: dict[str, Any], after: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rules that are not in both policies as they stand, by their ids, with the digests of the whole."""
    old, new = ({rule["id"]: rule for rule in each.get("rules", [])} for each in (before, after))
    return (
        {"digest": compute_digest(before), "rules": {id: rule for id, rule in old.items() if new.get(id) != rule}},
        {"digest": compute_digest(after), "rules": {id: rule for id, rule in new.items() if old.get(id) != rule}},
    )
