"""Leaves of the custody of evidence: values that were opened, erased or have grown old, exports and verifications."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import ABSENT, LeafData, MaybeWritten, Written, leaf_data


@leaf_data(Kind.SNAPSHOT_READ)
class OpenedSnapshot(LeafData):
    """That somebody was shown stored values, and why."""

    snapshot_kind: Annotated[str, "`input`, `output`, `error`, `logs`, …"]
    commitment: Annotated[str, "of the values"]
    reason: Written


NamesWords = Annotated[
    bool | None,
    "texts of facts that it takes are named, each by a `words.erased`; without it, as of hubs before, they are not",
]


@leaf_data(Kind.ERASURE_ASKED)
class AskedErasure(LeafData):
    """What the erasure of a person concerns."""

    concerns: Annotated[dict[str, int], "how many of what there was, by name"]
    names_words: NamesWords = None


@leaf_data(Kind.ERASURE_FINISHED)
class FinishedErasure(LeafData):
    """What the erasure of a person has taken."""

    removed: Annotated[dict[str, int], "how many of what went, by name"]
    asked_by: Annotated[str | None, "who asked"] = None
    names_words: NamesWords = None


@leaf_data(Kind.WORDS_ERASED)
class ErasedWords(LeafData):
    """Which texts of facts an erasure took."""

    count: Annotated[int, "how many"]
    snapshots: Annotated[list[str], "their ids"]


@leaf_data(Kind.RETENTION_SET)
class RetentionTimes(LeafData):
    """How long values are kept."""

    before: Annotated[dict[str, int | None], "days by class, before; null: for ever"]
    days: Annotated[dict[str, int | None], "days by class, from now on; null: for ever"]


@leaf_data(Kind.RETENTION_APPLIED)
class AppliedRetention(LeafData):
    """What was too old."""

    class_: Annotated[str, "of values"]
    count: Annotated[int, "how many went"]
    until: Annotated[str, "all before that"]


@leaf_data(Kind.EXPORT_CANCELLED)
class Export(LeafData):
    """Which export."""

    format: Annotated[str, "`jsonl`, `csv` or `bundle`"]


@leaf_data(Kind.EXPORT_MADE)
class RequestedExport(Export):
    """What somebody wants to have."""

    from_: Annotated[int, "number of the first leaf"]
    to: Annotated[int, "number of the first leaf after"]
    opens: Annotated[bool, "whether stored values are in it"]
    query: Annotated[str | None, "keyed hash of the search"] = None
    reason: MaybeWritten = None


@leaf_data(Kind.EXPORT_FINISHED)
class FinishedExport(Export):
    """What an export holds."""

    rows: Annotated[int, "how many facts"]
    bytes: Annotated[int, "its size"]
    digest: Annotated[str, "of its content"]


@leaf_data(Kind.EXPORT_FAILED)
class FailedExport(Export):
    """Why there is no export."""

    problem: Annotated[str, "what stood against it"]


@leaf_data(Kind.EXPORT_READ)
class ReadExport(Export):
    """Who has got an export, and how."""

    digest: Annotated[str, "of its content"]
    via: Annotated[str, "`key`, `link` or `console`"]
    bytes: Annotated[str | None, "first and last, of a part"] = None


@leaf_data(Kind.EXPORT_EXPIRED)
class ExpiredExport(Export):
    """Which export went because it was old."""

    bytes: Annotated[int, "its size"]
    digest: Annotated[str, "of its content"]


@leaf_data(Kind.VERIFICATION_ASKED)
class RequestedVerification(LeafData):
    """Which part of a log somebody wants to have verified."""

    log: Annotated[str, "its origin"]
    from_: Annotated[int, "number of the first leaf"]
    to: Annotated[int, "number of the first leaf after"]


@leaf_data(Kind.VERIFICATION_PASSED, Kind.VERIFICATION_FAILED, Kind.VERIFICATION_CLOSED)
class VerificationResult(RequestedVerification):
    """What was verified, and what was found, or is not there any more."""

    checkpoints: Annotated[int, "how many were held against the log"]
    codes: Annotated[list[str] | None, "of what was found"] = None
    first_bad: Annotated[int | None, "number of the first leaf that is wrong; null: it is none of a leaf"] = ABSENT
    by: Annotated[str | None, "the verification that has looked again and found it no more"] = None
