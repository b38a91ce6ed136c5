"""Problems of evidence: what can go wrong with it."""

from __future__ import annotations

from typing import Any, ClassVar

from kernel.problems import PlatformCode, Problem, Retryable


class KeyUnavailable(Problem):
    """The key for stored values is not available, so they cannot be read or written; nothing was changed."""

    reason, code, status = "EVIDENCE.KEY_UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.AFTER_ACTION, 60
    cause = (
        "The key file is missing, is another one than the values were stored with, or the stored values were changed."
    )
    cure = (
        "Operators: restore the key file from its backup; `manage.py doctor` says which key is missing. Then "
        "call again."
    )


class ValuesErased(Problem):
    """The stored values of this person were erased."""

    reason, code, status = "EVIDENCE.VALUES_ERASED", PlatformCode.NOT_FOUND, 410
    cause = (
        "Somebody with the right to do so had everything erased that was kept of the person whom the call was made for."
    )
    cure = "Nothing brings the values back. That the call was made, and how it ended, can still be read."


class ErasureNotConfirmed(Problem):
    """An erasure is confirmed with what its preview says, within 15 minutes."""

    reason, code, status = "EVIDENCE.ERASURE_NOT_CONFIRMED", PlatformCode.NEEDS_USER_CONFIRMATION, 409
    cause = "Nothing brings erased values back, so an erasure is looked at first: what was sent names no preview, or an old one."
    cure = "Ask for the preview again, look at what the erasure concerns, and send its `confirm` with the erasure."


class RevealReasonTooShort(Problem):
    """Revealing stored values needs a reason of at least 10 characters."""

    reason, code, status = "EVIDENCE.REASON_TOO_SHORT", PlatformCode.INVALID_ARGUMENT, 422
    cause = "Each look at stored values is kept with the reason for it, and the one that was given says too little."
    cure = "Write in at least 10 characters why you need to see the values."


class SearchInvalid(Problem):
    """The search was not understood."""

    reason, code, status = "EVIDENCE.SEARCH_INVALID", PlatformCode.INVALID_ARGUMENT, 422
    cause = "A term of the query has a qualifier that does not exist, a value that cannot be one, or an open quotation mark."
    cure = "Correct the terms that the findings name; each says where it stands and what to write instead."

    @classmethod
    def at(cls, query: str, wrong: list[dict[str, Any]]) -> SearchInvalid:
        """``wrong``: {at, length, message, instead} of each place, counted in characters."""
        first = wrong[0]
        return cls(
            f"{first['message']} ({query[first['at'] : first['at'] + first['length']]})",
            details={"query": query, "findings": [{"pointer": "/q", **each} for each in wrong]},
            remedy=f"Write instead: {first['instead']}",
        )

    def underline(self) -> list[dict[str, Any]]:
        """The findings, each with the wrong part of the query and what stands before and after it."""
        query, found = self.details["query"], self.details["findings"]
        ends = [(each["at"], each["at"] + each["length"]) for each in found]
        return [
            each | {"before": query[:at], "wrong": query[at:end], "after": query[end:]}
            for each, (at, end) in zip(found, ends, strict=True)
        ]


class SearchTooBroad(Problem):
    """The search takes too long, so it was given up."""

    reason, code, status = "EVIDENCE.SEARCH_TOO_BROAD", PlatformCode.TIMEOUT, 503
    retryable = Retryable.AFTER_ACTION
    cause = (
        "So much is stored that what the query asks for is not found in two seconds; others wait for the same database."
    )
    cure = "Narrow the search: a time (`after:24h`), a tool or an agent. Then ask again."


class NotSealed(Problem):
    """This is not in the log yet."""

    reason, code, status = "EVIDENCE.NOT_SEALED", PlatformCode.NOT_FOUND, 404
    retryable, retry_after_s = Retryable.YES, 3
    cause = "What happens is put into the log within seconds, by the keeper; this was not yet, or no keeper runs."
    cure = "Ask again in some seconds. Operators: `manage.py doctor` says whether a keeper is alive."


class ExportsFull(Problem):
    """This tenant has as many exports as it may."""

    reason, code, status = "EVIDENCE.EXPORTS_FULL", PlatformCode.RATE_LIMITED, 429
    retryable, retry_after_s = Retryable.YES, 60
    cause = "Exports take room and time of the keeper, so a tenant has only some at a time."
    cure = "Wait until one is done or has expired, or cancel one that nobody needs."


class ExportNotReady(Problem):
    """This export has no content to download."""

    reason, code, status = "EVIDENCE.EXPORT_NOT_READY", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "It is still being made, it failed or was cancelled, or its content was removed when its time was over."
    cure = "Look at its state: wait while it is being made, otherwise ask for the export again."


class ExportLinkInvalid(Problem):
    """This link to an export is not one that the hub gave out, or its time is over."""

    reason, code, status = "EVIDENCE.EXPORT_LINK", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "Links to exports are good for an hour, and as they are; a changed or cut one is refused."
    cure = "Ask for the export again with a key: its answer has a fresh link."


class ArchivedFactUnavailable(Problem):
    """This fact is in the archive, which does not answer."""

    reason, code, status = "EVIDENCE.ARCHIVE_UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.YES
    retry_after_s: ClassVar[int | None] = 30
    cause = "What old facts say is kept in the archive only, and that cannot be read now."
    cure = "Ask again in a minute. Operators: have the process reach TOOLHUB_ARCHIVE_URL."


class ArchivedFactLost(ArchivedFactUnavailable):
    """What this fact says is not in the archive as it was sealed."""

    reason, code, status = "EVIDENCE.ARCHIVE_DAMAGED", PlatformCode.UPSTREAM_ERROR, 502
    retryable, retry_after_s = Retryable.AFTER_ACTION, None
    cause = "The archive answers, and the object that has this fact is gone, cannot be read, or has another text of it."
    cure = (
        "Operators: `manage.py verify_log` names every such leaf. Restore the archive's objects from their backup; "
        "then ask again."
    )


class SearchIndexDamaged(Problem):
    """A part of the search index is not what was written there."""

    reason, code, status = "EVIDENCE.SEARCH_INDEX_DAMAGED", PlatformCode.INTERNAL, 500
    retryable = Retryable.AFTER_ACTION
    cause = "A row of the search index was changed past the hub, or its disk gave back other bytes. The log itself is not concerned."
    cure = "Operators: make the index again with `manage.py reindex_evidence`, then search again."


class NoSuchTree(Problem):
    """The log was never published at that size."""

    reason, code, status = "EVIDENCE.NO_SUCH_TREE", PlatformCode.NOT_FOUND, 404
    cause = "Proofs fit checkpoints that were published; there is none of this size, or the log is not that long yet."
    cure = "Take the sizes from checkpoints of this log; the newest one is at its address, followed by `/checkpoint`."
