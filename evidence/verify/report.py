"""Report: what somebody who verifies evidence gets to read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .strict import encode_base64

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FINDINGS = 100
MAX_PROPOSALS = 100
SHOWN_PROPOSALS = 10  # to people


@dataclass(frozen=True)
class VerificationFinding:
    """Something that is wrong: a sentence, and the leaf that it is about, if it is about one."""

    sentence: str
    index: int | None = None

    def __str__(self) -> str:
        return self.sentence if self.index is None else f"Leaf {self.index}: {self.sentence}"


@dataclass(frozen=True)
class ProvenProposal:
    """A call that the answer of a model proposed. ``model``: that gave the answer, by its id. ``values_compared``: also what was
    proposed and called, not only its hash.
    """

    call: str
    answer: str
    model: str
    values_compared: bool = False

    def __str__(self) -> str:
        how = ", and its values are those that were proposed" if self.values_compared else ""
        return f"{self.call} by the answer of {self.answer}, of {self.model}{how}"


@dataclass
class VerificationReport:
    """What was found. ``cosigned``: by name, the time (seconds since 1970) that each witness saw the checkpoint at."""

    origin: str = ""
    size: int = 0
    root: bytes = b""
    signed_at: int | None = None  # seconds since 1970, as the owner of the log says
    own_clock: bool = False  # the auditor named the key of the clock
    keys: list[str] = field(default_factory=list)  # that signed the checkpoint
    own_keys: bool = False  # the auditor named the keys
    older: list[int] = field(default_factory=list)  # the sizes of the older checkpoints that it continues
    cosigned: dict[str, int] = field(default_factory=dict)
    own_witnesses: list[str] = field(default_factory=list)  # those among them that the auditor named
    in_global_log: str = ""  # the origin of the log of checkpoints
    own_global_key: bool = False  # whose key the auditor named too
    start: int = 0
    stop: int = 0
    complete: bool = False
    about: dict[str, Any] = field(default_factory=dict)
    facts: int = 0
    good: int = 0
    pairs: int = 0
    open_calls: int = 0
    begun_before: int = 0
    commitments: int = 0
    values: int = 0
    proposals: int = 0  # calls that the answer of a model proposed
    proven_proposals: list[ProvenProposal] = field(default_factory=list)  # the first of them
    unseen_answers: int = 0  # calls that name an answer that is not in this evidence
    findings: list[VerificationFinding] = field(default_factory=list)
    more_findings: int = 0

    unanswered: list[str] = field(default_factory=list)  # what was asked and this evidence cannot tell
    mirror: bool = False  # a copied log instead of a bundle

    @property
    def ok(self) -> bool:
        return not self.findings and not self.unanswered

    @property
    def first_bad(self) -> int | None:
        return min((found.index for found in self.findings if found.index is not None), default=None)

    def found(self, sentence: object, index: int | None = None) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(VerificationFinding(str(sentence), index))
        else:
            self.more_findings += 1

    def add_proposals(self, checked: Iterable[ProvenProposal | VerificationFinding | None]) -> None:
        for each in checked:
            if each is None:
                self.unseen_answers += 1
            elif isinstance(each, VerificationFinding):
                self.found(each.sentence, each.index)
            else:
                self.proposals += 1
                if len(self.proven_proposals) < MAX_PROPOSALS:
                    self.proven_proposals.append(each)

    def continues(self, size: int) -> None:
        if size not in self.older:
            self.older.append(size)

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "ok": self.ok,
            "first_bad": self.first_bad,
            "root": encode_base64(self.root),
            "findings": [{"index": found.index, "sentence": found.sentence} for found in self.findings],
        }

    def lines(self) -> list[str]:
        """For people: what was verified, what it rests on, and the verdict last."""
        lines = self._about_the_log() if self.origin else []
        lines += self._about_the_facts() if self.stop else []
        lines += [f"WRONG   {found}" for found in self.findings]
        if self.more_findings:
            lines.append(f"WRONG   … and {self.more_findings} more.")
        lines += [f"UNKNOWN {sentence}" for sentence in self.unanswered]
        if self.ok:
            return [*lines, "", "VERIFIED"]
        first = (
            "" if self.first_bad is None else f" The first bad leaf is {self.first_bad}; {self.good} facts are good."
        )
        return [*lines, "", f"NOT VERIFIED.{first}"]

    def _about_the_log(self) -> list[str]:
        lines = [f"log        {self.origin}", f"checkpoint {self.size} leaves, root {encode_base64(self.root)}"]
        if self.signed_at is not None:
            whose = "" if self.own_clock else ", says a clock whose key came with the evidence"
            lines.append(f"signed at  {_time(self.signed_at)}{whose}")
        for key in self.keys:
            if self.own_keys:
                lines.append(f"key        {key}, which you named")
            else:
                lines += [
                    f"key        {key}",
                    "           came with the evidence: compare it with one that you got another way, or name it with --key",
                ]
        if self.in_global_log:
            whose = "a key that you named" if self.own_global_key else "a key that came with the bundle"
            lines.append(f"included   in {self.in_global_log}, signed with {whose}")
        for name, at in sorted(self.cosigned.items()):
            whose = "your witness" if name in self.own_witnesses else "with a key that came with the bundle"
            lines.append(f"witnessed  by {name} at {_time(at)}, {whose}")
        lines += [f"continues  the checkpoint of {size} leaves" for size in self.older]
        return lines

    def _about_the_facts(self) -> list[str]:
        if self.complete:
            whole = f"all leaves from {self.start} to {self.stop - 1}" if self.stop > self.start else "an empty range"
        else:
            whole = f"a selection of the leaves {self.start} to {self.stop - 1}: what is left out, and pairs, are not checked"
        lines = [f"facts      {self.good} of {self.facts} are in the log; {whole}"]
        if self.complete:
            before = f", {self.begun_before} began before the range" if self.begun_before else ""
            lines.append(f"calls      {self.pairs} began and ended, {self.open_calls} are open{before}")
        if self.commitments:
            opened = f"{self.values} of {self.commitments} opened, and they are what was committed to"
            lines.append(f"values     {opened if self.values else f'none of {self.commitments} opened'}")
        shown = self.proven_proposals[:SHOWN_PROPOSALS]
        lines += [f"proposed   {each}" for each in shown]
        if self.proposals > len(shown):
            lines.append(f"proposed   … and {self.proposals - len(shown)} more calls by the answers that they name")
        if self.unseen_answers:
            lines.append(
                f"proposed   {self.unseen_answers} by answers that are not in this evidence: whether they did is not checked"
            )
        return lines


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{seconds} s after 1970"
