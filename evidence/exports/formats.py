"""Export formats: what a fact looks like in an export."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Protocol

from evidence.exports.bundles import BundleFormat
from evidence.models import ExportFormat
from kernel.ids import encode

if TYPE_CHECKING:
    from evidence.exports.selection import SelectedFact
    from evidence.models import ExportJob


class Format(Protocol):
    """Bytes only; what must be remembered from one piece to the next is in ``job.progress``, which is saved with the piece."""

    media_type: str
    extension: str

    def begin(self, job: ExportJob) -> bytes:
        """What comes before the first fact."""

    def facts(self, job: ExportJob, rows: list[SelectedFact]) -> bytes: ...

    def end(self, job: ExportJob) -> bytes:
        """What comes after the last one."""


class JsonLines:
    """A fact a line: its index in the log, its text, which is what was hashed, and the hash."""

    media_type, extension = "application/jsonl", "jsonl"

    def begin(self, job: ExportJob) -> bytes:
        del job
        return b""

    def facts(self, job: ExportJob, rows: list[SelectedFact]) -> bytes:
        del job
        return b"".join(
            json.dumps(
                {
                    "index": row.index,
                    "leaf_hash": bytes(row.fact.leaf_hash).hex(),
                    "leaf": bytes(row.fact.leaf).decode(errors="replace"),
                },
                ensure_ascii=False,
                separators=(",", ":"),
            ).encode()
            + b"\n"
            for row in rows
        )

    def end(self, job: ExportJob) -> bytes:
        del job
        return b""


HEADER = (
    *("index", "time", "kind", "subject", "call", "actor_kind", "actor", "tool", "outcome", "reason", "trace"),
    *("leaf_hash", "leaf"),
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def neutralize_formula(text: str) -> str:
    """A spreadsheet takes what begins like a formula as one, whatever quotes stand around it."""
    return f"'{text}" if text.startswith(FORMULAS) else text


class Csv:
    """RFC 4180 with a header, for spreadsheets: each text is one, and none is a formula."""

    media_type, extension = "text/csv", "csv"

    def _lines(self, rows: list[tuple[object, ...]]) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
        writer.writerows([[neutralize_formula(str(each)) for each in row] for row in rows])
        return text.getvalue().encode()

    def begin(self, job: ExportJob) -> bytes:
        del job
        return self._lines([HEADER])

    def facts(self, job: ExportJob, rows: list[SelectedFact]) -> bytes:
        del job
        return self._lines([self._columns(row) for row in rows])

    def _columns(self, row: SelectedFact) -> tuple[object, ...]:
        fact = row.fact
        call = encode("inv", fact.invocation_id) if fact.invocation_id else ""
        return (
            *(row.index, fact.occurred_at.isoformat(timespec="microseconds"), fact.kind, fact.subject, call),
            *(fact.actor_kind, fact.actor_id, fact.tool, fact.outcome, fact.reason, fact.trace_id),
            *(bytes(fact.leaf_hash).hex(), bytes(fact.leaf).decode(errors="replace")),
        )

    def end(self, job: ExportJob) -> bytes:
        del job
        return b""


FORMATS: dict[str, Format] = {
    ExportFormat.JSONL: JsonLines(),
    ExportFormat.CSV: Csv(),
    ExportFormat.BUNDLE: BundleFormat(),
}
