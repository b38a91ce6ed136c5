"""Log context: the request, call, tenant and trace that a line of the log belongs to.

What is known is in one dictionary for each request or run, which the threads that work on it share, so that the line that the web
server writes at the end names what a thread found out. Ids only, never words of a caller but a request id that is harmless.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from pythonjsonlogger.json import JsonFormatter

from kernel.names import HEADER_REQUEST_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

FIELDS = ("request_id", "call_id", "tenant", "trace_id")
HOST_CHARS = 100

_known: ContextVar[dict[str, str] | None] = ContextVar("toolhub_log_context", default=None)


@contextmanager
def bind_log_context(**known: str) -> Iterator[None]:
    """The lines within the block are of this."""
    token = _known.set(known)
    try:
        yield
    finally:
        _known.reset(token)


def note_for_log(**more: str) -> None:
    """What has become known since; outside of :func:`bind_log_context` nobody asks."""
    if (known := _known.get()) is not None:
        known.update(more)


@contextmanager
def noted_for_log(**more: str) -> Iterator[None]:
    """The lines within the block are of this too; outside of :func:`bind_log_context` nobody asks."""
    known = _known.get()
    before = {field: known[field] for field in more if field in known} if known is not None else {}
    note_for_log(**more)
    try:
        yield
    finally:
        if known is not None:
            for field in more:
                known.pop(field, None)
            known.update(before)


def read_log_field(field: str) -> str:
    return (_known.get() or {}).get(field, "")


def read_log_request() -> dict[str, str]:
    """The id of the request, to be kept beside its trace with what it has begun; empty outside of one."""
    id = read_log_field("request_id")
    return {HEADER_REQUEST_ID.lower(): id} if id else {}


class LogContextFilter(logging.Filter):
    """Puts the fields into each record, empty when nobody knows them."""

    def filter(self, record: logging.LogRecord) -> bool:
        for field in FIELDS:
            setattr(record, field, read_log_field(field))
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            record.trace_id = trace.format_trace_id(span.trace_id)
        return True


class JsonLogFormatter(JsonFormatter):
    """One object a line: time, level, logger, message, the fields of the context; with a fault its stack."""

    def __init__(self) -> None:
        super().__init__(
            ["message"], reserved_attrs=[*vars(logging.makeLogRecord({})), *FIELDS, "color_message", "asctime"]
        )

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        log_data |= {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        super().add_fields(log_data, record, message_dict)
        log_data |= {field: getattr(record, field, "") for field in FIELDS}
        for extra in log_data.keys() - {"time", "level", "logger", "message", "exc_info", "stack_info", *FIELDS}:
            del log_data[extra]  # objects of libraries, a request for instance


class OneLineFilter(logging.Filter):
    """A host that the hub does not answer to is the caller's mistake: no stack, no error, and only the beginning of what was said."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args = "%s", (said[:HOST_CHARS] + ("…" if len(said) > HOST_CHARS else ""),)
        record.exc_info = record.exc_text = record.stack_info = None
        return True
