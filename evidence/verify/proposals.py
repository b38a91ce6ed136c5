"""Proposals: which answer of a model proposed a call, by the leaves of both.

The End of a call of a model has a keyed hash of each call that its answer proposed; the Begin of a call that was one of them names the
model call, with that hash. Where both values are opened as well, what was proposed and what was called are compared themselves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .facts import BEGINNING_OF, PAIRS, iter_commitments
from .problems import InvalidEvidence
from .report import ProvenProposal, VerificationFinding
from .strict import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class _Link:
    index: int
    call: str
    answer: str  # the model call
    model: str  # that gave the answer
    hash: str
    called: bytes | None  # digest of what was called, where its input was opened


@dataclass(frozen=True, slots=True)
class _Answer:
    model: str  # that gave it
    proposed: frozenset[str]  # the hashes of its proposals


@dataclass(slots=True)
class ProposalLinks:
    """The links of a range, and the answers that may be their other ends."""

    links: list[_Link] = field(default_factory=list)
    answers: dict[str, _Answer] = field(default_factory=dict)  # by model call
    opened: dict[str, frozenset[bytes]] = field(default_factory=dict)  # by model call: what it proposed

    def add(self, index: int, leaf: Mapping[str, Any], opened: Mapping[str, str]) -> None:
        """``opened``: values that the leaf commits to, by the name that each has in it."""
        data, call = leaf.get("data"), leaf.get("invocation", "")
        if not isinstance(data, dict):
            return
        if leaf["kind"] in PAIRS and "proposed_by" in data:
            match data["proposed_by"]:
                case {"invocation": str(answer), "model": str(name), "proposal": str(hash)}:
                    self.links.append(_Link(index, call, answer, name, hash, _read_called(leaf, opened.get("input"))))
                case _:
                    raise InvalidEvidence("It does not say which answer proposed the call.")
        elif leaf["kind"] in BEGINNING_OF and isinstance(model := data.get("model"), dict):
            proposed = model.get("proposed", [])
            if not isinstance(proposed, list) or not all(isinstance(each, str) for each in proposed):
                raise InvalidEvidence("It does not say what the model proposed.")
            # The model that was asked, unless another has answered in its place.
            self.answers[call] = _Answer(str(model.get("stood_in", leaf.get("tool", ""))), frozenset(proposed))
            if "output" in opened:
                self.opened[call] = frozenset(_iter_proposed(opened["output"]))

    def check(self, *, whole: bool) -> Iterator[ProvenProposal | VerificationFinding | None]:
        """For each link the proof, or what is wrong; None where its answer is not here. ``whole``: every leaf before the link is."""
        for link in self.links:
            answer = self.answers.get(link.answer)
            if answer is None:
                said = (
                    f"{link.call} names {link.answer} as the answer that proposed it, and the log has no such answer."
                )
                yield VerificationFinding(said, link.index) if whole else None
            elif link.hash not in answer.proposed:
                said = (
                    f"{link.call} was not proposed by {link.answer}, as its Begin says: its End has no such proposal."
                )
                yield VerificationFinding(said, link.index)
            elif link.model != answer.model:
                asked, gave = link.model, answer.model
                said = f"{link.call} names {asked} as the model that proposed it, and {link.answer} is an answer of {gave}."
                yield VerificationFinding(said, link.index)
            elif link.called is not None and link.called not in self.opened.get(link.answer, {link.called}):
                said = f"What {link.call} was called with is not what {link.answer} proposed, though its Begin says so."
                yield VerificationFinding(said, link.index)
            else:
                compared = link.called is not None and link.answer in self.opened
                yield ProvenProposal(link.call, link.answer, link.model, values_compared=compared)


def name_opened(document: Mapping[str, Any], opened: Mapping[str, str]) -> dict[str, str]:
    """Values by the names that a leaf has for them; ``opened`` has them by snapshot."""
    return {name: opened[each["snapshot"]] for name, each in iter_commitments(document) if each["snapshot"] in opened}


def _read_called(leaf: Mapping[str, Any], text: str | None) -> bytes | None:
    if text is None:
        return None
    match decode_json(text.encode(), where="The opened input"):
        case {"arguments": arguments, "envelope": {"proposed_by": {"call_id": str(call_id)}}}:
            return _digest(call_id, leaf.get("tool", ""), arguments)
    raise InvalidEvidence("The opened input does not name the proposal that its leaf names.")


def _iter_proposed(text: str) -> Iterator[bytes]:
    match decode_json(text.encode(), where="The opened output"):
        case {"data": {"proposals": list(proposals)}}:
            for each in proposals:
                if isinstance(each, dict):
                    yield _digest(each.get("call_id"), each.get("name"), each.get("arguments"))


def _digest(call_id: Any, tool: Any, arguments: Any) -> bytes:
    return sha256(json.dumps(_to_same_numbers([call_id, tool, arguments]), sort_keys=True).encode()).digest()


def _to_same_numbers(value: Any) -> Any:
    """The value with 1.0 as 1. They are one number in canonical JSON, and a value that is not in it may have either."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_to_same_numbers(each) for each in value]
    return {name: _to_same_numbers(each) for name, each in value.items()} if isinstance(value, dict) else value
