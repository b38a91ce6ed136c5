"""Mirror: whether a log that was copied file by file is the one that it says it is.

A mirror is a folder with `checkpoint`, perhaps `vkeys`, and the tiles where c2sp.org/tlog-tiles has them, as any HTTP client copies
them from a hub. Every leaf is read, so any checkpoint that was kept can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .archive import CHECKPOINT, MANIFEST, MAX_SMALL_BYTES, VKEYS
from .facts import Pairs, parse_leaf
from .notes import COSIGNATURE, VerifierKey, clock_name, open_checkpoint, open_note
from .problems import CannotTell, InvalidEvidence, MalformedEvidence, UnknownSigner
from .proposals import ProposalLinks
from .report import VerificationReport
from .strict import decode_text
from .wholelog import check_log, iter_mirror_leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def is_mirror(path: Path) -> bool:
    return (path / CHECKPOINT).is_file() and (path / "tile").is_dir() and not (path / MANIFEST).exists()


def verify_mirror(
    path: Path, *, keys: Sequence[str] = (), older: Sequence[bytes] = (), witnesses: Sequence[str] = ()
) -> VerificationReport:
    """Check each leaf of the log at ``path``, its checkpoint, and the kept ones of ``older``."""
    report = VerificationReport(own_keys=bool(keys), mirror=True, complete=True)
    try:
        _verify(path, report, keys, older, witnesses)
    except InvalidEvidence as error:
        report.found(error)
    return report


def _verify(
    path: Path, report: VerificationReport, keys: Sequence[str], older: Sequence[bytes], witnesses: Sequence[str]
) -> None:
    if not keys and not (path / VKEYS).is_file():
        raise CannotTell("A mirror without a file vkeys can only be verified with --key.")
    trusted = [VerifierKey.parse(key) for key in keys or _small(path / VKEYS).splitlines()]
    note = _small(path / CHECKPOINT)
    head = open_checkpoint(note, trusted)
    report.origin, report.size, report.root, report.stop = head.origin, head.size, head.root, head.size
    for found in open_note(note, [*trusted, *witnesses]).verified:
        if found.at is None:
            report.keys += [str(key) for key in trusted if (key.name, key.id) == (found.name, found.id)]
        elif found.name == clock_name(head.origin):
            report.signed_at, report.own_clock = found.at, bool(keys)
        else:
            report.cosigned[found.name] = found.at
    for key in map(VerifierKey.parse, witnesses):
        if key.alg != COSIGNATURE or key.name not in report.cosigned:
            raise UnknownSigner(f"The witness {key.name} ({key.id.hex()}) has not cosigned the checkpoint.")
        report.own_witnesses.append(key.name)
    heads = sorted(
        [head, *(open_checkpoint(each, trusted, origin=head.origin) for each in older)], key=lambda each: each.size
    )
    report.older = [each.size for each in heads if each is not head]
    if heads[-1].size > head.size:
        raise InvalidEvidence(
            f"Your checkpoint has {heads[-1].size} leaves, that of the mirror only {head.size}: the log was cut."
        )
    pairs, proposals = Pairs(), ProposalLinks()
    for finding in check_log(_leaves(path, report, pairs, proposals), heads):
        report.found(finding.sentence, finding.index)
        report.good -= finding.index is not None
    report.pairs, report.open_calls, report.begun_before = pairs.complete, len(pairs.begun), len(pairs.ended)
    for invocation, index in pairs.ended.items():
        report.found(f"The call {invocation} ended and never began.", index)
    report.add_proposals(proposals.check(whole=report.good == report.facts))


def _leaves(
    path: Path, report: VerificationReport, pairs: Pairs, proposals: ProposalLinks
) -> Iterator[tuple[int, bytes, bytes | None]]:
    for row in iter_mirror_leaves(path, report.size):
        report.facts += 1
        try:
            leaf = parse_leaf(row[1])
            pairs.add(row[0], leaf)
            proposals.add(row[0], leaf, {})
            report.good += 1
        except InvalidEvidence as error:
            report.found(error, row[0])
        yield row


def _small(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_SMALL_BYTES + 1)
    if len(data) > MAX_SMALL_BYTES:
        raise MalformedEvidence(f"{path.name} is larger than {MAX_SMALL_BYTES >> 20} MiB.")
    return decode_text(data, where=path.name)
