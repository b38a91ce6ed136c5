"""Files: those of a tenant that its tools may read and write, and where they are kept.

As rows of the database, each encrypted under a key of its own: every worker has them, no path of a host is ever named, and
the room of a tenant is a sum that is checked in the transaction that would exceed it. A run gets copies of what it may read,
and what it made is kept with the call's End or not at all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import transaction
from django.db.models import Q, Sum
from django.db.models.functions import Greatest, Length

from access.models import Tenant
from evidence import services as evidence
from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.keys.subject_keys import unwrap_key, wrap_under
from evidence.kinds import Kind
from evidence.leaves.call_ends import FileChanges, WrittenFiles
from evidence.leaves.files import FileContent, FileUpload
from evidence.problems import KeyUnavailable
from invocations.files.problems import FilesFull, FilesTooLarge, NoSuchFile
from invocations.models import StoredFile
from invocations.sandbox.base import TenantFile
from invocations.tool_files.models import ToolFiles
from kernel.canonical import compute_digest
from kernel.problems import Conflict, SchemaInvalid, TooLarge
from sandbox.files import UnsafePath, split_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from evidence.models import SubjectKey
    from invocations.sandbox.base import RunOutcome
    from kernel.principal import Principal
    from unitools.capabilities import Capabilities

MIB = 1024 * 1024
MAX_FILE_BYTES = 16 * MIB  # also of all files that one run gets
MAX_FILES_OF_A_RUN = 100
LEAST_BYTES = 4096  # that a file counts as


def check_path(path: str) -> str:
    """A path as tools see it: ``/data/reports/june.csv``."""
    try:
        split_path(path)
    except UnsafePath as error:
        raise SchemaInvalid.at("/path", f"A file cannot be kept there. {error}") from error
    return path


def _context(tenant_id: UUID, path: str) -> bytes:
    return tenant_id.bytes + b"\0file\0" + path.encode()


def _sealed(tenant_id: UUID, path: str, content: bytes, key: SubjectKey | None) -> dict[str, Any]:
    """Under the key of the call that wrote it; what people store is under the hub's."""
    data_key, nonce = AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
    if key is None:
        key_id, wrapped = get_keystore().wrap(data_key, context=tenant_id.bytes)
    else:
        key_id, wrapped = "", wrap_under(key, data_key)
    return {
        "size": len(content),
        "fingerprint": evidence.compute_fingerprint(content, tenant_id=tenant_id),
        "subject_key": key,
        "key_id": key_id,
        "wrapped_key": wrapped,
        "nonce": nonce,
        "ciphertext": AESGCM(data_key).encrypt(nonce, content, _context(tenant_id, path)),
    }


def open_file(row: StoredFile) -> bytes:
    """Its content. Who opens it to give it to somebody records that first."""
    data_key = unwrap_key(row)
    try:
        return AESGCM(data_key).decrypt(bytes(row.nonce), bytes(row.ciphertext), _context(row.tenant_id, row.path))
    except InvalidTag as error:
        raise KeyUnavailable("A file does not belong to its row, or was changed.") from error


def _lock(tenant_id: UUID) -> None:
    """Two writers are not to find the same last free byte, nor the same free name."""
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)


def sum_file_bytes(rows: QuerySet[StoredFile]) -> int:
    """Bytes, as the limit counts them."""
    return int(rows.aggregate(bytes=Sum(Greatest("size", LEAST_BYTES)))["bytes"] or 0)


def sum_tool_file_bytes(rows: QuerySet[ToolFiles]) -> int:
    """Bytes, as the limit counts them: names take room too."""
    return int(rows.aggregate(bytes=Sum(Greatest(Length("ciphertext"), LEAST_BYTES)))["bytes"] or 0)


def _check_quota(tenant_id: UUID, path: str, more: int) -> None:
    others = StoredFile.objects.filter(tenant_id=tenant_id).exclude(path=path)
    kept = sum_tool_file_bytes(ToolFiles.objects.filter(tenant_id=tenant_id))
    if sum_file_bytes(others) + kept + max(more, LEAST_BYTES) > settings.TOOLHUB_FILES_MAX_MB * MIB:
        raise FilesFull(
            f"There is no room for {more:,} bytes more: the files of a tenant may take {settings.TOOLHUB_FILES_MAX_MB} MiB, "
            f"and each counts as at least {LEAST_BYTES:,} bytes.",
            remedy="Remove files that nobody needs, or ask the operator of the hub for more room.",
        )


def _check_place(tenant_id: UUID, path: str) -> None:
    """A name is a file's or a folder's."""
    above = [path[:end] for end in range(len("/data/"), len(path)) if path[end] == "/"]
    taken = StoredFile.objects.filter(Q(path__in=above) | Q(path__startswith=f"{path}/"), tenant_id=tenant_id)
    paths = taken.values_list("path", flat=True)
    other = next(
        (each for each in paths if each in above or each.startswith(f"{path}/")), None
    )  # SQLite asks without case
    if other is not None:
        raise Conflict(
            f"{path} cannot be there beside {other}: a name is that of a file or of a folder.",
            remedy="Choose another name, or remove the other file first.",
        )


def _write(
    *, tenant_id: UUID, path: str, content: bytes, changed_by: str, key: SubjectKey | None = None
) -> tuple[StoredFile, bool]:
    """Store or replace, within the caller's transaction."""
    _lock(tenant_id)
    _check_quota(tenant_id, path, len(content))
    _check_place(tenant_id, path)
    fields = _sealed(tenant_id, path, content, key) | {"changed_by": changed_by}
    return StoredFile.objects.update_or_create(tenant_id=tenant_id, path=path, defaults=fields)


@transaction.atomic
def store_file(*, path: str, content: bytes, by: Principal) -> tuple[StoredFile, bool]:
    """Keep a file at a path; one that was there is replaced for good. Returns it, and whether it is new."""
    check_path(path)
    if len(content) > MAX_FILE_BYTES:
        raise TooLarge(f"A file has at most {MAX_FILE_BYTES:,} bytes.")
    row, created = _write(tenant_id=by.tenant_id, path=path, content=content, changed_by=by.id)
    evidence.record(
        kind=Kind.FILE_STORED,
        subject=row.wire_id,
        actor=by,
        data=FileUpload(bytes=row.size, content=row.fingerprint, new=created),
    )
    return row, created


def _row(path: str, by: Principal) -> StoredFile:
    row = StoredFile.objects.select_for_update().filter(tenant_id=by.tenant_id, path=path).first()
    if row is None:
        raise NoSuchFile(f"There is no file {path[:200]} here.")
    return row


def find_file(file_id: UUID, *, tenant_id: UUID, has_content: bool = False) -> StoredFile | None:
    """One of the tenant's, by its id. ``has_content``: to be opened; what it holds is not fetched where only its size is asked for."""
    rows = StoredFile.objects.filter(tenant_id=tenant_id, pk=file_id)
    return (rows if has_content else rows.defer("ciphertext")).first()


@transaction.atomic
def read_file(*, path: str, by: Principal) -> bytes:
    """The content. That it was read is a fact before it is returned."""
    row = _row(path, by)
    evidence.record(kind=Kind.FILE_READ, subject=row.wire_id, actor=by, data=FileContent(content=row.fingerprint))
    return open_file(row)


@transaction.atomic
def remove_file(*, path: str, by: Principal) -> None:
    row = _row(path, by)
    evidence.record(kind=Kind.FILE_REMOVED, subject=row.wire_id, actor=by, data=FileContent(content=row.fingerprint))
    row.delete()


# For a run.


def list_path_rules(reach: Capabilities) -> list[dict[str, Any]]:
    """``{path, kind, actions}``: where a run may do what."""
    return list(reach.to_json()["fs"])


def _covered(rules: Iterable[dict[str, Any]], action: str) -> Q | None:
    found: Q | None = None
    for rule in rules:
        if action not in rule["actions"]:
            continue
        here = Q(path=rule["path"])
        if rule.get("kind", "tree") == "tree":
            here |= Q(path__startswith=rule["path"].rstrip("/") + "/")
        found = here if found is None else found | here
    return found


def may_access_path(rules: Iterable[dict[str, Any]], action: str, path: str) -> bool:
    """The rule that is nearest to the path decides, as in the algebra."""
    nearest: dict[str, Any] | None = None
    for rule in rules:
        tree = rule.get("kind", "tree") == "tree"
        if (path == rule["path"] or (tree and path.startswith(rule["path"].rstrip("/") + "/"))) and (
            nearest is None or len(rule["path"]) > len(nearest["path"])
        ):
            nearest = rule
    return nearest is not None and action in nearest["actions"]


def load_run_files(reach: Capabilities, *, tenant_id: UUID) -> tuple[TenantFile, ...]:
    """Copies of what a run may read. Too many are refused, since a run that saw only some would answer wrongly."""
    rules = list_path_rules(reach)
    where = _covered(rules, "read")
    if where is None:
        return ()
    heads = StoredFile.objects.filter(where, tenant_id=tenant_id).values_list("pk", "path", "size")
    readable = list(
        islice(((pk, size) for pk, path, size in heads if may_access_path(rules, "read", path)), MAX_FILES_OF_A_RUN + 1)
    )
    if len(readable) > MAX_FILES_OF_A_RUN or sum(size for _, size in readable) > MAX_FILE_BYTES:
        raise FilesTooLarge(
            f"The tool may read more than the {MAX_FILES_OF_A_RUN} files of {MAX_FILE_BYTES:,} bytes that a run can be given.",
            remedy="Narrow the paths of the grant or the installation, or remove files.",
        )
    rows = StoredFile.objects.filter(pk__in=[pk for pk, _ in readable]).order_by("path")
    return tuple(TenantFile(row.path, open_file(row)) for row in rows)


@dataclass(slots=True)
class KeptFiles:
    """What became of the files that a run left and removed."""

    read: int = 0
    written: list[StoredFile] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    not_taken: list[tuple[str, str]] = field(default_factory=list)  # with the reason

    def describe_changes(self) -> FileChanges | None:
        """For the End fact; names are for the sealed part."""
        if not (self.read or self.written or self.removed or self.not_taken):
            return None
        files = compute_digest([[row.wire_id, row.fingerprint] for row in self.written])
        return FileChanges(
            read=self.read,
            written=WrittenFiles(count=len(self.written), bytes=sum(row.size for row in self.written), hash=files),
            removed=len(self.removed),
            not_taken=len(self.not_taken),
        )

    def sealed(self) -> dict[str, Any]:
        return {
            "written": [row.path for row in self.written],
            "removed": self.removed,
            "not_taken": [list(each) for each in self.not_taken],
        }


def keep_nothing(outcome: RunOutcome, before: Sequence[TenantFile], why: str) -> KeptFiles:
    left = [*(each.path for each in outcome.files), *outcome.gone]
    return KeptFiles(read=len(before), not_taken=[*outcome.skipped, *((path, why) for path in left)])


def keep_files(
    outcome: RunOutcome, reach: Capabilities, before: Sequence[TenantFile], *, key: SubjectKey, by: str
) -> KeptFiles:
    """Keep what a run has left, in the transaction of its End, under the key of its call.

    The box lets a tool do only what the rules say; they are asked once more here, where it counts. A file that somebody has
    changed since the run got its copy is not removed: the tool has not seen it.
    """
    tenant_id, rules = key.tenant_id, list_path_rules(reach)
    had = {each.path: each.content for each in before}
    kept = KeptFiles(read=len(before), not_taken=list(outcome.skipped))
    if outcome.files or outcome.gone:
        _lock(tenant_id)
    for path in outcome.gone:  # first: what is moved needs its room once
        row = StoredFile.objects.filter(tenant_id=tenant_id, path=path).defer("ciphertext").first()
        if path not in had or not may_access_path(rules, "delete", path):
            kept.not_taken.append((path, "it may not remove this file"))
        elif row is None or row.fingerprint != evidence.compute_fingerprint(had[path], tenant_id=tenant_id):
            kept.not_taken.append((path, "the file was changed or removed meanwhile"))
        else:
            row.delete()
            kept.removed.append(path)
    for each in outcome.files:
        existing = StoredFile.objects.filter(tenant_id=tenant_id, path=each.path).exists()
        if may_access_path(rules, "write" if existing else "create", each.path):
            row, _ = _write(tenant_id=tenant_id, path=each.path, content=each.content, changed_by=by, key=key)
            kept.written.append(row)
        else:
            why = "a file is there that it may not change" if existing else "it may not make a file there"
            kept.not_taken.append((each.path, why))
    return kept
