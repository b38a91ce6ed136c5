"""Sent files: artifacts and files that the request of a call carries to a service, named among its arguments by their ids.

Whoever makes the call may read each of them, which is looked at when it is made. That one is read for a service is a fact before
anything is sent.
"""

from __future__ import annotations

import mimetypes
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.files import FileContent, ReadArtifact
from invocations.artifacts.description import detect_media_type
from invocations.artifacts.models import Artifact
from invocations.artifacts.problems import NoSuchArtifact
from invocations.artifacts.services import decrypt_content, find_artifacts
from invocations.end.end_record import build_caller_principal
from invocations.files.problems import NoSuchFile
from invocations.files.services import find_file, open_file
from invocations.kept_callers import build_used_connection
from invocations.model_calls.held_files import (
    ARTIFACT,
    READ_ARTIFACTS,
    READ_FILES,
    find_held_artifact,
    find_held_file,
)
from invocations.sandbox.base import SentFile
from kernel.ids import decode
from kernel.problems import SchemaInvalid, TooLarge
from unitools.openapi.argument_values import ArgumentRefused
from unitools.openapi.request_bodies import choose_media_type, list_wanted_types

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.calls import CallRequest
    from invocations.models import Invocation, StoredFile
    from kernel.principal import Principal
    from unitools.manifest import Manifest

MIB = 1024 * 1024
MAX_FILES = 20
MAX_BYTES = 7 * MIB  # the gate takes a request of 8, in which the rest of a form has room
VIA = "service"
GONE = "It was removed since the call was made, or is not this caller's to read any more."


def list_sent_ids(manifest: Manifest, arguments: Any) -> list[str]:
    """The ids in the arguments that are files, as often as each is sent. ``arguments`` have been held against the input schema."""
    return [id for ids in _list_named_ids(manifest, arguments).values() for id in ids]


def _list_named_ids(manifest: Manifest, arguments: Any) -> dict[str, list[str]]:
    """By the arguments that name them."""
    found = {}
    for name in manifest.file_arguments:
        said = arguments.get(name)
        found[name] = [each for each in (said if isinstance(said, list) else [said]) if isinstance(each, str)]
    return found


def check_sent_files(manifest: Manifest, call: CallRequest, *, by: Principal) -> None:
    """Is each of them there, for this caller to read, and are they small enough together? Looked at before anything is read.

    A step that the hub makes sends what the calls beside it have left; what others of the agent's calls have left only where whoever
    submitted the chain or the run might read that; and no files of the tenant.
    """
    named = _list_named_ids(manifest, call.arguments) if call.has_arguments else {}
    if sum(map(len, named.values())) > MAX_FILES:
        raise SchemaInvalid.at("", f"A call sends at most {MAX_FILES} files.")
    size = 0
    for argument, id in ((argument, id) for argument, ids in named.items() for id in ids):
        if id.startswith(ARTIFACT):
            if not call.is_step:
                by.check(READ_ARTIFACTS)
            artifact = find_held_artifact(id, by=by)
            if call.is_step and not _is_of_step_beside(call, artifact.invocation):
                by.check(READ_ARTIFACTS)
            _check_media_type(manifest, argument, artifact.media_type)
            size += artifact.content.size
        else:
            by.check(READ_FILES)
            size += find_held_file(id, by=by).size
    _check_size(size)


def _is_of_step_beside(call: CallRequest, made: Invocation) -> bool:
    """Whether both are calls of one chain, or of one run."""
    if call.chain_step is not None:
        return made.chain_step is not None and made.chain_step.chain_id == call.chain_step.chain_id
    return call.run_step is not None and made.run_step is not None and made.run_step.run_id == call.run_step.run_id


def _check_media_type(manifest: Manifest, argument: str, media_type: str) -> None:
    """Before a person is asked about the call. What a stored file is is only known once it is read."""
    try:
        choose_media_type(argument, media_type, list_wanted_types(manifest.operation or {}, argument))
    except ArgumentRefused as error:
        raise SchemaInvalid.at(f"/{argument}", str(error)) from error


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise TooLarge(
            f"The files that the call sends have {size:,} bytes; a call sends at most {MAX_BYTES:,}.",
            details={"max_bytes": MAX_BYTES},
            remedy="Send fewer or smaller files.",
        )


def load_sent_files(invocation: Invocation, manifest: Manifest, arguments: Any) -> tuple[SentFile, ...]:
    """Their contents, for the run of an accepted call. A file that was replaced since is sent as it is now, as evidence says."""
    ids = list_sent_ids(manifest, arguments)
    if not ids:
        return ()
    by = _build_reader(invocation)
    with transaction.atomic():
        rows = {id: _find_row(id, by) for id in ids}
        _check_size(sum(_measure(rows[id]) for id in ids))
        return tuple(_read_row(row, invocation.pk, by=by) for row in rows.values())


def _measure(row: Artifact | StoredFile) -> int:
    return row.content.size if isinstance(row, Artifact) else row.size


def _build_reader(invocation: Invocation) -> Principal:
    """The agent with the credential that the call came by, as it is kept with the call."""
    program = invocation.connection_id
    connection = build_used_connection(program, tenant_id=invocation.tenant_id) if program else None
    return replace(build_caller_principal(invocation), key_id=invocation.key_id, connection=connection)


def _find_row(id: str, by: Principal) -> Artifact | StoredFile:
    """What the credential is shown by now: a call may have waited for days, and a person have taken their account from its agent.
    Without what they hold, which is fetched of one after another once all are known to be small enough."""
    if id.startswith(ARTIFACT):
        if (artifact := find_artifacts(by).filter(pk=decode("art", id)).first()) is None:
            raise NoSuchArtifact(f"There is no artifact {id[:60]} to send.", remedy=GONE)
        return artifact
    return _find_file(id, by.tenant_id)


def _find_file(id: str, tenant_id: UUID, *, has_content: bool = False) -> StoredFile:
    file = find_file(decode("fil", id), tenant_id=tenant_id, has_content=has_content)
    if file is None:
        raise NoSuchFile(f"There is no file {id[:60]} to send.", remedy=GONE)
    return file


def _read_row(row: Artifact | StoredFile, call_id: UUID, *, by: Principal) -> SentFile:
    """With the fact that it was read for this call, whose End says whether its request left."""
    if isinstance(row, Artifact):
        fingerprint = row.content.fingerprint
        data: FileContent = ReadArtifact(content=fingerprint, via=VIA)
        evidence.record(kind=Kind.ARTIFACT_READ, subject=row.wire_id, actor=by, data=data, invocation_id=call_id)
        return SentFile(row.wire_id, row.name, row.media_type, decrypt_content(row.content), fingerprint)
    row = _find_file(row.wire_id, row.tenant_id, has_content=True)
    file = FileContent(content=row.fingerprint)
    evidence.record(kind=Kind.FILE_READ, subject=row.wire_id, actor=by, data=file, invocation_id=call_id)
    content, name = open_file(row), row.path.rpartition("/")[2]
    media_type = detect_media_type(content, mimetypes.guess_type(name)[0] or "")
    return SentFile(row.wire_id, name, media_type, content, row.fingerprint)
