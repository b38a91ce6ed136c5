"""Witness client: what witnesses say of the hub's newest checkpoint.

The hub's side of c2sp.org/tlog-witness. What a witness signs is put below the checkpoint itself, so it is in every export. A witness
that has seen another history is an alarm: either this hub was rewritten, or it was set back to an older state.
"""

from __future__ import annotations

from dataclasses import dataclass

from evidence.log.checkpoints import add_signatures
from evidence.log.reader import latest_checkpoint, load_tree
from evidence.models import GLOBAL_LOG, Checkpoint
from evidence.verify import merkle, notes
from evidence.verify.problems import InvalidEvidence
from evidence.witnesses.witness import WitnessRequest
from kernel.database.connections import release_connection
from kernel.http.outbound import OutboundFailed, send_request

STATUSES = range(100, 600)


class OtherHistory(Exception):
    """The witness has seen a checkpoint that this log does not continue."""


@dataclass(frozen=True, slots=True)
class WitnessAddress:
    """A witness of the settings: ``vkey@address``."""

    key: notes.VerifierKey
    url: str

    @property
    def name(self) -> str:
        return self.key.name

    @classmethod
    def parse(cls, text: str) -> WitnessAddress:
        """Raises ``ValueError`` for what is none."""
        vkey, _, url = text.partition("@")
        key = notes.VerifierKey.parse(vkey)
        if key.alg != notes.COSIGNATURE or not url:
            raise ValueError(f"{text!r} is not the key of a witness with its address behind an @.")
        return cls(key, url.rstrip("/"))


def ask_witness(witness: WitnessAddress, *, seen: int) -> int:
    """Show it the newest checkpoint; returns the size that it has cosigned (0: there is none yet).

    ``seen``: what it has seen as far as the hub knows. Raises :class:`OtherHistory`, and ``Failed`` for what may work later.
    """
    checkpoint = latest_checkpoint(GLOBAL_LOG)
    if checkpoint is None:
        return 0
    old, status = min(seen, checkpoint.size), 409
    while status == 409:
        status, said = _ask(witness, checkpoint, old)
        if status == 200:
            add_signatures(tenant_id=GLOBAL_LOG, size=checkpoint.size, lines=[_checked(witness, checkpoint, said)])
            return checkpoint.size
        if status == 409:  # another keeper may have shown it more than there was a moment ago
            checkpoint = latest_checkpoint(GLOBAL_LOG) or checkpoint
            old = _known(said, old, checkpoint.size)
    if status == 422:
        raise OtherHistory("It has seen leaves that are not in this log any more: history was rewritten.")
    raise OutboundFailed(f"Answered {status}.")


def _known(said: str, old: int, size: int) -> int:
    """The size that the witness names in place of ``old``."""
    if not said.strip().isdigit():
        raise OutboundFailed("Answered 409 without the size that it has seen.")
    known = int(said)
    if known > size:
        raise OtherHistory(f"It has seen {known} leaves of a log that has {size} here: this hub was set back.")
    if known <= old:  # the same size: with another root
        raise OtherHistory(f"It has seen another tree of {known} leaves: history was rewritten.")
    return known


def _ask(witness: WitnessAddress, checkpoint: Checkpoint, old: int) -> tuple[int, str]:
    proof = merkle.consistency_proof(load_tree(GLOBAL_LOG), old, checkpoint.size)
    body = WitnessRequest(old, proof, checkpoint.note).text().encode()
    release_connection()
    answer = send_request(f"{witness.url}/add-checkpoint", method="POST", body=body, statuses=STATUSES)
    return answer.status, answer.body.decode("utf-8", "replace")


def _checked(witness: WitnessAddress, checkpoint: Checkpoint, lines: str) -> str:
    """The signature line of the witness, verified."""
    text, _ = notes.split_note(checkpoint.note)
    try:
        opened = notes.open_note(f"{text}\n{lines}", [witness.key])
    except InvalidEvidence as error:
        raise OutboundFailed(f"Its signature cannot be used: {error}") from error
    return opened.verified[0].line
