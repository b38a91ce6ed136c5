"""Bundles: how one is made from a log.

Its format is :mod:`evidence.verify.bundle`'s. All facts are proven against one checkpoint, that of ``progress["tree"]``; the keeper
signs the list of files last, with every key that signs the log.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from evidence.exports.revealed_values import iter_revealed_values
from evidence.integrity.columns import as_leaf
from evidence.log.reader import build_anchor_proof, checkpoint_at, list_vkeys, load_origin, load_tree
from evidence.log.signer import get_signer
from evidence.log.signing_keys import signing_keys
from evidence.models import GLOBAL_LOG, Log
from evidence.problems import NotSealed
from evidence.verify import bundle
from evidence.verify.facts import BEGINNING_OF, PAIRS, leaf_columns
from evidence.verify.merkle import consistency_proof, inclusion_proof
from evidence.verify.notes import ED25519, VerifierKey

if TYPE_CHECKING:
    from evidence.exports.selection import SelectedFact
    from evidence.log.signers.base import LogPublicKey
    from evidence.models import ExportJob
    from evidence.verify.notes import Signer


class BundleFormat:
    media_type, extension = "application/zip", "zip"

    def begin(self, job: ExportJob) -> bytes:
        del job
        return b""

    def facts(self, job: ExportJob, rows: list[SelectedFact]) -> bytes:
        if not rows:
            return b""
        checkpoint, tree = checkpoint_at(job.tenant_id, job.progress["tree"]), load_tree(job.tenant_id)
        lines = []
        for row in rows:
            leaf = bytes(row.fact.leaf)
            said = row.fact.content
            if not job.query:
                _follow_pairs(job.progress, said)
            lines.append(
                bundle.fact_line(
                    index=row.index,
                    leaf=leaf,
                    path=inclusion_proof(tree, row.index, checkpoint.size),
                    checkpoint=checkpoint.note,
                    columns=leaf_columns(as_leaf(row.fact)),
                    values=iter_revealed_values(job, said) if job.opens else (),
                )
            )
        return _add(job, bundle.facts_name(rows[0].index), b"".join(lines))

    def end(self, job: ExportJob) -> bytes:
        log = Log.objects.get(pk=job.tenant_id)
        checkpoint, tree = checkpoint_at(job.tenant_id, job.progress["tree"]), load_tree(job.tenant_id)
        content = _add(job, bundle.VKEYS, "".join(f"{key}\n" for key in _vkeys(log.origin)).encode())
        content += _add(job, bundle.CHECKPOINT, checkpoint.note.encode(), after=len(content))
        if older := job.progress.get("older"):
            path = consistency_proof(tree, older, checkpoint.size)
            proof = bundle.consistency_file(old=older, path=path, checkpoint=checkpoint.note)
            note = checkpoint_at(job.tenant_id, older).note
            content += _add(job, bundle.OLDER, note.encode(), after=len(content))
            content += _add(job, bundle.CONSISTENCY, proof, after=len(content))
        with contextlib.suppress(NotSealed):  # the log of checkpoints may not have it yet; the format can do without
            content += _add(job, bundle.GLOBAL, build_anchor_proof(checkpoint).encode(), after=len(content))
        document = bundle.build_manifest(
            _entries(job),
            signers=_signers(log.origin),
            origin=log.origin,
            start=job.start,
            stop=job.stop,
            complete=not job.query,
            open_calls=job.progress.get("open", []),
            about={
                "export": job.wire_id,
                "by": job.actor_id,
                "made_at": job.created_at.isoformat(),
                "query": job.query,
            },
        )
        content += _add(job, bundle.MANIFEST, document, after=len(content))
        return content + bundle.zip_end(_entries(job))


def _entries(job: ExportJob) -> list[bundle.BundleEntry]:
    return [bundle.BundleEntry(**entry) for entry in job.progress.get("entries", [])]


def _add(job: ExportJob, name: str, data: bytes, *, after: int = 0) -> bytes:
    content, entry = bundle.zip_entry(name, data, offset=job.size + after)
    job.progress = job.progress | {"entries": [*job.progress.get("entries", []), entry.as_json()]}
    return content


def _follow_pairs(progress: dict[str, Any], leaf: dict[str, Any]) -> None:
    """Which calls began in the bundle and have not ended in it. An End may be sealed before its Begin: clocks of hosts differ."""
    kind, call = leaf.get("kind", ""), leaf.get("invocation", "")
    if kind in PAIRS or kind in BEGINNING_OF:
        mine, others = ("open", "ended") if kind in PAIRS else ("ended", "open")
        found = progress.setdefault(others, [])
        if call in found:
            found.remove(call)
        else:
            progress.setdefault(mine, []).append(call)


def _vkeys(origin: str) -> list[str]:
    """Those of the log, and of the log of checkpoints."""
    return list(dict.fromkeys([*list_vkeys(origin), *list_vkeys(load_origin(GLOBAL_LOG))]))


def _signers(origin: str) -> list[Signer]:
    """Every key that signs the log now: during a rotation who trusts only the old one, or only the new one, verifies the bundle."""
    return [_LogSigner(origin, key) for key in signing_keys()]  # type: ignore[misc]  # their keys stay with the signer


class _LogSigner:
    """A key of the logs under the name of one of them."""

    def __init__(self, origin: str, key: LogPublicKey) -> None:
        self._name = key.name
        self.key = VerifierKey(origin, ED25519, key.log)

    @property
    def private(self) -> _LogSigner:
        return self

    def sign(self, message: bytes) -> bytes:
        return get_signer().sign(message, key=self._name)
