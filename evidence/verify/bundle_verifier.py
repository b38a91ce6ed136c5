"""Bundle verifier: whether a bundle shows what it claims.

:func:`verify_bundle` checks all that docs/reference/bundle.md asks for and goes on behind a fact that is wrong, so that the report
names the first bad leaf and still counts the good ones.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .archive import CHECKPOINT, CONSISTENCY, GLOBAL, MANIFEST, OLDER, VKEYS, Archive, iter_lines, open_archive
from .bundle import PREDICATE_TYPE
from .dsse import open_statement
from .facts import Pairs, check_columns, check_value, iter_commitments, parse_leaf
from .merkle import Frontier, leaf_hash, verify_consistency
from .notes import COSIGNATURE, Checkpoint, VerifierKey, clock_name, open_checkpoint, open_note, split_note
from .problems import InvalidEvidence, MalformedEvidence, UnknownSigner
from .proofs import ConsistencyProof, InclusionProof
from .proposals import ProposalLinks, name_opened
from .report import VerificationReport
from .strict import decode_json, decode_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LINE = {"index", "leaf", "proof"}
_LINE_MAY = {"columns", "values"}
_PREDICATE = {"origin", "start", "stop", "complete", "open", "about"}


def verify_bundle(
    path: Path, *, keys: Sequence[str] = (), older: Sequence[bytes] = (), witnesses: Sequence[str] = ()
) -> VerificationReport:
    """Check the bundle at ``path``.

    ``keys`` and ``witnesses`` are vkeys that the auditor trusts; ``older`` are checkpoints that were kept from before.

    Raises ``OSError`` when there is nothing to read.
    """
    report = VerificationReport(own_keys=bool(keys))
    try:
        with open_archive(path) as archive:
            _Check(archive, report, keys, witnesses).run(older)
    except InvalidEvidence as error:
        report.found(error)
    return report


class _Check:
    def __init__(
        self, archive: Archive, report: VerificationReport, keys: Sequence[str], witnesses: Sequence[str]
    ) -> None:
        self.archive, self.report = archive, report
        self.given = [VerifierKey.parse(key) for key in keys]
        self.witnesses = [VerifierKey.parse(key) for key in witnesses]
        if any(key.alg != COSIGNATURE for key in self.witnesses):
            raise MalformedEvidence("A key of a witness is of type 4 (cosignature/v1); the one given is a log's.")
        self.digests: dict[str, str] = {}
        self.pairs = Pairs()
        self.proposals = ProposalLinks()
        self.next_index = 0
        self.trusted: list[VerifierKey] = []
        self.checkpoint = Checkpoint("", 0, b"")
        self.note = self.text = ""
        self.said_open: set[str] = set()
        self.cosigners: set[str] = set()
        self.kept: dict[
            int, list[Checkpoint]
        ] = {}  # older checkpoints that the tree of the bundle's leaves is compared with
        self.tree = Frontier()
        self.whole = True  # no fact is wrong or missing so far

    def run(self, older: Sequence[bytes]) -> None:
        bundled = [VerifierKey.parse(line) for line in self._text(VKEYS).splitlines()]
        self.trusted = self.given or bundled
        self._open_checkpoint(bundled)
        named = self._open_manifest()
        for name in (GLOBAL, OLDER, CONSISTENCY):
            if name in self.archive.sizes:
                self.digests[name] = _sha256(self.archive.read(name))
        with self._noting():
            self._check_global(bundled)
        with self._noting():
            self._check_witnesses(bundled)
        with self._noting():
            self._check_older(older)
        for name in self.archive.facts:
            with self._noting():
                self._check_facts(name)
        self._check_range()
        self._check_files(named)

    @contextmanager
    def _noting(self, index: int | None = None) -> Iterator[None]:
        try:
            yield
        except InvalidEvidence as error:
            self.report.found(error, index)

    def _text(self, name: str) -> str:
        data = self.archive.read(name)
        self.digests[name] = _sha256(data)
        return decode_text(data, where=name)

    def _open_checkpoint(self, bundled: list[VerifierKey]) -> None:
        self.note = self._text(CHECKPOINT)
        self.text = split_note(self.note)[0]
        self.checkpoint = open_checkpoint(self.note, self.trusted)
        report = self.report
        report.origin, report.size, report.root = self.checkpoint.origin, self.checkpoint.size, self.checkpoint.root
        clock = clock_name(self.checkpoint.origin)
        clocks = [key for key in bundled if key.name == clock and key.alg == COSIGNATURE]
        for found in open_note(self.note, [*self.trusted, *_others(clocks, self.trusted)]).verified:
            if found.name == clock:
                report.signed_at, report.own_clock = found.at, any(key.name == clock for key in self.given)
            elif found.name == self.checkpoint.origin:
                report.keys += [str(key) for key in self.trusted if (key.name, key.id) == (found.name, found.id)]

    def _open_manifest(self) -> dict[str, str]:
        own = [key for key in self.trusted if key.name == self.checkpoint.origin]
        statement, _ = open_statement(self.archive.read(MANIFEST), own)
        if statement.predicate_type != PREDICATE_TYPE:
            raise MalformedEvidence(f"The manifest is of type {statement.predicate_type!r}, not {PREDICATE_TYPE}.")
        report = self.report
        match statement.predicate:
            case {
                "origin": str(origin),
                "start": int(start),
                "stop": int(stop),
                "complete": bool(complete),
                "open": list(opened),
                "about": dict(about),
            } if statement.predicate.keys() == _PREDICATE and all(isinstance(each, str) for each in opened):
                report.start, report.stop, report.complete, report.about = start, stop, complete, about
                self.said_open = set(opened)
            case _:
                raise MalformedEvidence("The manifest does not say what a manifest of a bundle says.")
        if origin != self.checkpoint.origin:
            raise InvalidEvidence(f"The manifest is of {origin}, the checkpoint of {self.checkpoint.origin}.")
        if not 0 <= report.start <= report.stop <= self.checkpoint.size:
            raise InvalidEvidence(
                f"The manifest speaks of leaves {report.start} to {report.stop - 1}, the checkpoint of {self.checkpoint.size} leaves."
            )
        self.next_index = report.start
        return statement.subjects

    def _check_global(self, bundled: list[VerifierKey]) -> None:
        if GLOBAL not in self.archive.sizes:
            return
        proof = InclusionProof.parse(self._text(GLOBAL))
        keys = [*self.trusted, *_others(bundled, self.trusted)]
        head = open_checkpoint(proof.note, keys)
        if head.origin == self.checkpoint.origin:
            raise InvalidEvidence("The log of checkpoints has the origin of the tenant's own log.")
        proof.verify(self.text.encode(), head)
        self.report.in_global_log = head.origin
        known = {key.public for key in self.given}
        self.report.own_global_key = any(key.name == head.origin and key.public in known for key in keys)
        self._count_witnesses(proof.note, head.origin, bundled)

    def _check_witnesses(self, bundled: list[VerifierKey]) -> None:
        self._count_witnesses(self.note, self.checkpoint.origin, bundled)
        for key in self.witnesses:
            if str(key) not in self.cosigners:
                raise UnknownSigner(f"The witness {key.name} ({key.id.hex()}) has not cosigned the checkpoint.")
            self.report.own_witnesses.append(key.name)

    def _count_witnesses(self, note: str, origin: str, bundled: list[VerifierKey]) -> None:
        keys = {(key.name, key.id): key for key in [*bundled, *self.given, *self.witnesses] if key.alg == COSIGNATURE}
        try:
            verified = open_note(note, keys.values()).verified
        except UnknownSigner:
            return
        for found in verified:
            if found.name not in (clock_name(origin), clock_name(self.checkpoint.origin)) and found.at is not None:
                self.report.cosigned[found.name] = found.at
            self.cosigners.add(str(keys[found.name, found.id]))

    def _check_older(self, kept: Sequence[bytes]) -> None:
        has = {name for name in (OLDER, CONSISTENCY) if name in self.archive.sizes}
        bridges = {self.checkpoint.size: self.checkpoint}
        if len(has) == 1:
            raise MalformedEvidence(f"The bundle has a file {has.pop()} but not the one that belongs to it.")
        if has:
            older = open_checkpoint(self._text(OLDER), self.trusted, origin=self.checkpoint.origin)
            proof = ConsistencyProof.parse(self._text(CONSISTENCY))
            if split_note(proof.note)[0] != self.text:
                raise InvalidEvidence("The consistency proof leads to another checkpoint than that of the bundle.")
            if proof.note != self.note:
                open_checkpoint(proof.note, self.trusted, origin=self.checkpoint.origin)
            proof.verify(older, self.checkpoint)
            bridges[older.size] = older
            self.report.continues(older.size)
        for note in kept:
            mine = open_checkpoint(note, self.trusted, origin=self.checkpoint.origin)
            if mine.size > self.checkpoint.size:
                raise InvalidEvidence(
                    f"Your checkpoint has {mine.size} leaves, that of the bundle only {self.checkpoint.size}: the log was cut, "
                    "or the bundle is older than your checkpoint."
                )
            bridge = bridges.get(mine.size, self.checkpoint)
            if mine.size == 0 or mine.size in bridges:
                verify_consistency(mine.size, bridge.size, mine.root, bridge.root, [])
                self.report.continues(mine.size)
            elif self.report.complete and self.report.start == 0 and mine.size <= self.report.stop:
                self.kept.setdefault(mine.size, []).append(mine)  # all its leaves are here: their tree will tell
            else:
                self.report.unanswered.append(
                    f"The bundle does not show whether its log continues your checkpoint of {mine.size} leaves. "
                    "Ask for an export with this checkpoint as the older one, or of all leaves."
                )

    def _check_facts(self, name: str) -> None:
        hash = hashlib.sha256()
        with self.archive.open(name) as file:
            for number, line in enumerate(iter_lines(file, name), 1):
                hash.update(line)
                self._check_line(line, f"Line {number} of {name}", first=int(name[6:18]) if number == 1 else None)
        self.digests[name] = hash.hexdigest()

    def _check_line(self, line: bytes, where: str, *, first: int | None) -> None:
        """One fact. Whatever is wrong with it is noted at its index, and the next one is looked at."""
        report = self.report
        report.facts += 1
        try:
            said = _parse_line(line, where)
        except InvalidEvidence as error:
            self._bad_fact(error, self.next_index)
            self.next_index += 1
            return
        index = said["index"]
        if first is not None and index != first:
            report.found(f"{where} is not leaf {first}, with which this file begins by its name.", index)
        if not self.next_index <= index < report.stop:
            self._bad_fact(f"{where} holds it, where it is out of order, there twice, or out of the range.", index)
            return
        if index > self.next_index and report.complete:
            self._bad_fact(f"It is missing: the next leaf of the bundle is {index}.", self.next_index)
        self.next_index = index + 1
        try:
            document = self._check_fact(index, said, where)
        except InvalidEvidence as error:
            self._bad_fact(error, index)
            return
        except RecursionError:
            self._bad_fact(f"{where} is nested too deeply.", index)
            return
        report.good += 1
        with self._noting(index):
            self.pairs.add(index, document)
        if self.kept and self.whole:
            self._compare_kept(leaf_hash(said["leaf"].encode()))

    def _compare_kept(self, hash: bytes) -> None:
        self.tree.append_many([hash])
        for mine in self.kept.get(self.tree.size, ()):
            with self._noting():
                verify_consistency(mine.size, mine.size, mine.root, self.tree.root(), [])
                self.report.continues(mine.size)

    def _bad_fact(self, sentence: object, index: int) -> None:
        self.report.found(sentence, index)
        self.whole = False

    def _check_fact(self, index: int, said: dict[str, Any], where: str) -> dict[str, Any]:
        leaf, proof = said["leaf"].encode(), InclusionProof.parse(said["proof"])
        if proof.index != index:
            raise InvalidEvidence(f"{where} has the proof of leaf {proof.index} instead.")
        if split_note(proof.note)[0] != self.text:
            raise InvalidEvidence(f"The proof in {where.lower()} leads to another checkpoint than that of the bundle.")
        if proof.note != self.note:
            open_checkpoint(proof.note, self.trusted, origin=self.checkpoint.origin)
        proof.verify(leaf, self.checkpoint)
        document = parse_leaf(leaf, where=f"Leaf {index}")
        columns = said.get("columns", {})
        if not isinstance(columns, dict):
            raise MalformedEvidence(f"The columns in {where.lower()} are not an object.")
        check_columns(document, columns)
        opened = self._check_values(document, said.get("values", []), where)
        self.proposals.add(index, document, name_opened(document, opened))
        return document

    def _check_values(self, document: dict[str, Any], values: Any, where: str) -> dict[str, str]:
        """The values that were opened, by snapshot."""
        commitments = {each["snapshot"]: each for _, each in iter_commitments(document)}
        self.report.commitments += len(commitments)
        opened: dict[str, str] = {}
        if not isinstance(values, list):
            raise MalformedEvidence(f"The values in {where.lower()} are not a list.")
        for value in values:
            match value:
                case {"snapshot": str(name), "salt": str(salt), "value": str(text), **more} if not more:
                    if name not in commitments:
                        raise InvalidEvidence(
                            f"{where} opens {name}, to which its leaf is not (or not twice) committed."
                        )
                    check_value(commitments.pop(name), salt=salt, value=text)
                    opened[name] = text
                    self.report.values += 1
                case _:
                    raise MalformedEvidence(
                        f"A value in {where.lower()} does not have exactly snapshot, salt and value."
                    )
        return opened

    def _check_range(self) -> None:
        report, pairs = self.report, self.pairs
        report.pairs = pairs.complete
        report.add_proposals(self.proposals.check(whole=report.complete and report.start == 0 and self.whole))
        if not report.complete:
            return
        if self.next_index < report.stop:
            last = report.stop - 1
            more = f", and so is every leaf to {last}" if last > self.next_index else ""
            self._bad_fact(f"It is missing{more}.", self.next_index)
        report.open_calls, report.begun_before = len(pairs.begun), len(pairs.ended)
        if not self.whole:
            return  # what lacks its other half lacks it because of what was found already
        for invocation, index in pairs.begun.items():
            if invocation not in self.said_open:
                report.found(
                    f"The call {invocation} began and did not end, and the manifest does not call it open.", index
                )
        for invocation in sorted(self.said_open - pairs.begun.keys()):
            report.found(f"The manifest calls {invocation} open, which did not begin in the range or has ended.")
        if report.start == 0:
            for invocation, index in pairs.ended.items():
                report.found(f"The call {invocation} ended and never began.", index)

    def _check_files(self, named: dict[str, str]) -> None:
        for name in sorted(self.archive.sizes.keys() - named.keys() - {MANIFEST}):
            self.report.found(f"The manifest does not know the file {name}.")
        for name in sorted(named):
            if name not in self.archive.sizes:
                self.report.found(f"The file {name} is missing.")
            elif name in self.digests and self.digests[name] != named[name]:
                self.report.found(f"The file {name} is not the one that the manifest names: its digest differs.")


def _parse_line(line: bytes, where: str) -> dict[str, Any]:
    said: dict[str, Any] = decode_json(line, where=where)
    match said:
        case {"index": int(index), "leaf": str(), "proof": str()} if not isinstance(index, bool):
            if line.endswith(b"\n") and said.keys() - _LINE_MAY == _LINE:
                return said
    raise MalformedEvidence(f"{where} does not have exactly what a line of facts has.")


def _others(keys: list[VerifierKey], than: Sequence[VerifierKey]) -> list[VerifierKey]:
    """Keys of other owners than those that are trusted: what came with the bundle never stands in for a key that was given."""
    names = {key.name for key in than}
    return [key for key in keys if key.name not in names]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
