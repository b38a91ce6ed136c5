"""Integrity findings: what can be wrong with a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy


class FindingCode(TextChoices):
    """Told in the console, in facts and over REST by these names, which are never changed."""

    SEAL_MISSING = "seal.missing", gettext_lazy("No fact has this place in the log.")
    SEAL_DOUBLED = "seal.doubled", gettext_lazy("Two facts have this place in the log.")
    FACT_MISSING = "fact.missing", gettext_lazy("The fact of this leaf is missing.")
    LEAF_CHANGED = (
        "leaf.changed",
        gettext_lazy("The text that was sealed and the tile of the tree disagree: one was changed."),
    )
    FACT_HASH = "fact.hash", gettext_lazy("The hash stored with the fact does not match its text.")
    FACT_COLUMNS = "fact.columns", gettext_lazy("The columns of the fact do not match its text.")
    FACT_TYPE = "fact.type", gettext_lazy("A column of the fact holds a value of the wrong type.")
    FACT_UNLISTED = "fact.unlisted", gettext_lazy("The fact is in no log and is not waiting to be sealed.")
    PENDING_WRONG = (
        "pending.wrong",
        gettext_lazy("An entry waiting to be sealed is already sealed or does not exist."),
    )
    PAIR_BROKEN = "pair.broken", gettext_lazy("A call has no Begin, has ended without an End, or has two of either.")
    COMMITMENT_WRONG = "commitment.wrong", gettext_lazy("Stored values do not match the commitment in the fact.")
    COMMITMENT_MISSING = (
        "commitment.missing",
        gettext_lazy(
            "Stored values that the fact commits to are missing, and neither an erasure nor retention removed them."
        ),
    )
    TILE_WRONG = "tile.wrong", gettext_lazy("A tile of the tree does not follow from the leaves.")
    TILE_MISSING = "tile.missing", gettext_lazy("A tile of the tree is missing, too short or too long.")
    CHECKPOINT_SIGNATURE = "checkpoint.signature", gettext_lazy("A checkpoint is not signed by a key of this log.")
    CHECKPOINT_ROOT = (
        "checkpoint.root",
        gettext_lazy("The root of a checkpoint differs from that of the tree of leaves."),
    )
    CHECKPOINT_COLUMNS = (
        "checkpoint.columns",
        gettext_lazy("The columns of a checkpoint do not match its note."),
    )
    CHECKPOINT_TYPE = (
        "checkpoint.type",
        gettext_lazy("A column of a checkpoint holds a value of the wrong type."),
    )
    ROW_TYPE = (
        "row.type",
        gettext_lazy("A row that belongs to the facts holds a value of the wrong type in one of its columns."),
    )
    CHECKPOINT_MISSING = "checkpoint.missing", gettext_lazy("A checkpoint is missing.")
    KEY_WRONG = "key.wrong", gettext_lazy("A public key differs from the one recorded in the log.")
    LOG_WRONG = "log.wrong", gettext_lazy("The log does not match its leaves and checkpoints.")
    BEYOND_END = "log.beyond", gettext_lazy("There are rows beyond the end of the log.")
    ROLLED_BACK = "log.rolled_back", gettext_lazy("The log does not continue a checkpoint that was kept outside.")


@dataclass(frozen=True, slots=True)
class IntegrityFinding:
    """``index``: of the leaf, or of the last leaf that it concerns; None for what is wrong with the log as a whole."""

    code: FindingCode
    index: int | None = None
    detail: str = ""  # names of columns, ids and numbers; never values of calls
    seen: tuple[int, str] | None = None  # of a roll-back: the size that the log had, and its root in hex

    def to_json(self) -> dict[str, Any]:
        said = {"code": str(self.code), "index": self.index, "detail": self.detail}
        return said | ({"seen": list(self.seen)} if self.seen else {})


# What is found at the end of a log is asked again with each look, and its end moves on: it is the same thing at another leaf.
OF_THE_END = frozenset(
    {FindingCode.LOG_WRONG, FindingCode.BEYOND_END, FindingCode.ROLLED_BACK, FindingCode.TILE_MISSING}
)
# The gravest first: another history, then facts and what they commit to, then what can be made anew from them.
GRAVITY = (
    FindingCode.ROLLED_BACK,
    FindingCode.CHECKPOINT_ROOT,
    FindingCode.CHECKPOINT_SIGNATURE,
    FindingCode.KEY_WRONG,
    FindingCode.CHECKPOINT_MISSING,
    FindingCode.LOG_WRONG,
    FindingCode.BEYOND_END,
    FindingCode.FACT_MISSING,
    FindingCode.SEAL_MISSING,
    FindingCode.SEAL_DOUBLED,
    FindingCode.LEAF_CHANGED,
    FindingCode.FACT_UNLISTED,
    FindingCode.PAIR_BROKEN,
    FindingCode.COMMITMENT_WRONG,
    FindingCode.COMMITMENT_MISSING,
    FindingCode.FACT_HASH,
    FindingCode.FACT_COLUMNS,
    FindingCode.FACT_TYPE,
    FindingCode.CHECKPOINT_COLUMNS,
    FindingCode.CHECKPOINT_TYPE,
    FindingCode.ROW_TYPE,
    FindingCode.TILE_WRONG,
    FindingCode.TILE_MISSING,
    FindingCode.PENDING_WRONG,
)


def finding_key(finding: dict[str, Any]) -> tuple[str, int | None, str]:
    """The same for what is the same thing."""
    return finding["code"], None if finding["code"] in OF_THE_END else finding["index"], finding["detail"]
