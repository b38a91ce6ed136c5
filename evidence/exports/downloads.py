"""Downloads: who has downloaded what of an export.

That somebody did is a fact before the first byte is sent. Content is opened and sent piece by piece, whole or a range of it, so that a
download can go on where it broke off.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import transaction
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

from evidence import services as evidence
from evidence.exports.formats import FORMATS
from evidence.exports.storage import opened_piece
from evidence.kinds import Kind
from evidence.leaves.custody import ReadExport
from evidence.models import ExportChunk, ExportJob, ExportState
from evidence.problems import ExportNotReady
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from uuid import UUID

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from kernel.principal import Principal

_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})", re.ASCII)


class NoSuchRange(ValueError):
    """The asked range begins after the end."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """``[start, stop)`` of a Range header (RFC 9110); None for what may be answered with all of it."""
    found = _RANGE.fullmatch(header.strip())
    if found is None or found[1] == found[2] == "":
        return None
    if found[1] == "":  # the last so many bytes
        if not int(found[2]) or not size:
            raise NoSuchRange
        return max(0, size - int(found[2])), size
    start = int(found[1])
    stop = min(size, int(found[2]) + 1) if found[2] else size
    if start >= size:
        raise NoSuchRange
    return (start, stop) if start < stop else None


@transaction.atomic
def read_export(*, job_id: UUID, start: int | None, stop: int | None, by: Principal, via: str) -> ExportJob:
    """The job, whose bytes ``start`` … ``stop`` - 1 may now be sent. The fact says which, and ``via`` what."""
    job = ExportJob.objects.get(pk=job_id, tenant_id=by.tenant_id)
    if job.state != ExportState.DONE:
        raise ExportNotReady(f"This export is {job.state}.", details={"state": job.state})
    part = None if start is None else f"{start}-{(stop or 0) - 1}"
    said = ReadExport(format=job.format, digest=job.digest, via=via, bytes=part)
    evidence.record(kind=Kind.EXPORT_READ, subject=job.wire_id, actor=by, data=said)
    return job


def _piece(job: ExportJob, number: int) -> tuple[int, bytes]:
    """Where it stands, and what it is. Sent after the request's own scope has ended, so it acts for the tenant itself."""
    with acting_for(job.tenant_id):
        try:
            row = ExportChunk.objects.get(job=job, number=number)
            return row.offset, opened_piece(job, row)
        finally:
            release_connection()


def _numbers(job: ExportJob, start: int, stop: int) -> list[int]:
    rows = ExportChunk.objects.filter(job=job, offset__lt=stop).order_by("number")
    return [number for number, offset, size in rows.values_list("number", "offset", "size") if offset + size > start]


def _cut(found: tuple[int, bytes], start: int, stop: int) -> bytes:
    offset, content = found
    return content[max(0, start - offset) : stop - offset]


def _sent(job: ExportJob, numbers: list[int], start: int, stop: int) -> Iterator[bytes]:
    for number in numbers:
        yield _cut(_piece(job, number), start, stop)


async def _sent_later(job: ExportJob, numbers: list[int], start: int, stop: int) -> AsyncIterator[bytes]:
    for number in numbers:
        yield _cut(await sync_to_async(_piece, thread_sensitive=False)(job, number), start, stop)


def content_response(request: HttpRequest, *, job_id: UUID, by: Principal, via: str) -> HttpResponseBase:
    """200 with all of it, 206 with the asked range, 416 for one that is not there."""
    job = ExportJob.objects.get(pk=job_id, tenant_id=by.tenant_id)
    header = request.headers.get("Range", "")
    if request.headers.get("If-Range", _etag(job)) != _etag(job):
        header = ""
    try:
        asked = parse_range(header, job.size)
    except NoSuchRange:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{job.size}"})
    start, stop = asked or (0, job.size)
    job = read_export(job_id=job_id, start=asked[0] if asked else None, stop=stop, by=by, via=via)
    send = _sent_later if isinstance(request, ASGIRequest) else _sent
    response = StreamingHttpResponse(send(job, _numbers(job, start, stop), start, stop), status=206 if asked else 200)
    format = FORMATS[job.format]
    headers = {
        "Content-Type": format.media_type,
        "Content-Length": str(stop - start),
        "Content-Disposition": content_disposition_header(
            as_attachment=True, filename=f"{job.wire_id}.{format.extension}"
        ),
        "Accept-Ranges": "bytes",
        "ETag": _etag(job),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    if asked:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{job.size}"
    for name, value in headers.items():
        response.headers[name] = value or ""
    return response


def _etag(job: ExportJob) -> str:
    return f'"{job.digest}"'
