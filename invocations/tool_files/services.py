"""Tool files: what the tools of a group keep from call to call, and whose it is.

A version that declares ``state`` finds in ``/data`` what the calls before it have left: those of its group (``mcp.memory`` of
``mcp.memory.read_graph``), package and publisher, and of the same tenant, agent, or agent and person, as it declares. Its calls run
one at a time. A call that succeeds replaces the whole; of any other nothing is kept, as if it had not been. Each End says what the
files were before and after.
"""

from __future__ import annotations

import json
import os
import struct
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import transaction

from access.models import Tenant
from evidence import services as evidence
from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.keys.subject_keys import unwrap_key, wrap_under
from evidence.kinds import Kind
from evidence.leaves.call_ends import KeptToolFiles
from evidence.leaves.files import FileContent
from evidence.problems import KeyUnavailable
from invocations.files.problems import FilesFull, NoSuchFile
from invocations.files.services import LEAST_BYTES, MIB, sum_file_bytes, sum_tool_file_bytes
from invocations.models import StoredFile
from invocations.sandbox.base import TenantFile
from invocations.tool_files.models import ToolFiles
from invocations.tool_files.problems import ToolFilesChanged, ToolFilesNeedPerson, ToolFilesRefused
from invocations.value_keys import find_values_key
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from evidence.models import SubjectKey
    from invocations.models import Invocation
    from invocations.sandbox.base import RunOutcome
    from kernel.principal import Principal
    from unitools.manifest import Manifest

_LENGTH = struct.Struct("!I")
NOTHING_KEPT = ""  # the digest of no files


@dataclass(frozen=True, slots=True)
class FilesOwner:
    """Whose the files are."""

    tenant_id: UUID
    group: str
    package: str
    scope: str
    name: str = ""

    @classmethod
    def of_call(cls, invocation: Invocation, manifest: Manifest) -> FilesOwner:
        """:class:`ToolFilesNeedPerson` where they would be a person's, and the call is made for none."""
        state = manifest.state
        assert state is not None
        scope = str(state["scope"])
        agent, person = encode("agt", invocation.agent_id), invocation.user_fingerprint
        if scope == "person" and not person:
            raise ToolFilesNeedPerson(f"{manifest.id} keeps files of a person, and this call is made for none.")
        # For whom a call is made its agent says: the word of one agent must not open what is kept for another.
        name = {"tenant": "", "agent": agent, "person": f"{agent} {person}"}[scope]
        package, publisher = manifest.files_package, _find_publisher(invocation)
        if publisher != invocation.tenant_id:  # whose package is called the same is another's
            package = f"{encode('ten', publisher)} {package}"
        return cls(invocation.tenant_id, manifest.group, package, scope, name)

    def fields(self) -> dict[str, Any]:
        return {
            "tenant_id": self.tenant_id,
            "group": self.group,
            "package": self.package,
            "scope": self.scope,
            "owner": self.name,
        }

    def rows(self) -> QuerySet[ToolFiles]:
        return ToolFiles.objects.filter(**self.fields())


def _find_publisher(invocation: Invocation) -> UUID:
    assert invocation.version is not None
    return invocation.version.tool.tenant_id


def pack_files(files: Iterable[TenantFile]) -> bytes:
    """The same files give the same bytes."""
    ordered = sorted(files, key=lambda each: each.path)
    head = json.dumps([[each.path, len(each.content)] for each in ordered]).encode()
    return b"".join((_LENGTH.pack(len(head)), head, *(each.content for each in ordered)))


def unpack_files(data: bytes) -> tuple[TenantFile, ...]:
    (length,) = _LENGTH.unpack_from(data)
    place, found = _LENGTH.size + length, []
    for path, size in json.loads(data[_LENGTH.size : place]):
        found.append(TenantFile(path, data[place : place + size]))
        place += size
    return tuple(found)


def compute_files_digest(files: Sequence[TenantFile], *, tenant_id: UUID) -> str:
    """Keyed, so that nobody outside can try what they hold; empty where there are none."""
    return evidence.compute_fingerprint(pack_files(files), tenant_id=tenant_id) if files else NOTHING_KEPT


def _context(owner: FilesOwner) -> bytes:
    said = ("", "tool files", owner.group, owner.package, owner.scope, owner.name)
    return owner.tenant_id.bytes + "\0".join(said).encode()


def open_files(row: ToolFiles) -> tuple[TenantFile, ...]:
    owner = FilesOwner(row.tenant_id, row.group, row.package, row.scope, row.owner)
    # Before the publisher was named they were sealed without; migration 0008 has named it, and the next change seals them with it.
    named_later = replace(owner, package=owner.package.partition(" ")[2])
    key = AESGCM(unwrap_key(row))
    for each in (owner, named_later) if named_later.package else (owner,):
        with suppress(InvalidTag):
            return unpack_files(key.decrypt(bytes(row.nonce), bytes(row.ciphertext), _context(each)))
    raise KeyUnavailable("Kept files do not belong to their row, or were changed.")


def load_tool_files(invocation: Invocation, manifest: Manifest) -> tuple[TenantFile, ...]:
    """What the calls before this one have left for it."""
    row = FilesOwner.of_call(invocation, manifest).rows().first()
    return () if row is None else open_files(row)


@dataclass(slots=True)
class ToolFilesChange:
    """What became of the files of a call that may keep some. ``before``, ``after``: digests."""

    scope: str = ""
    group: str = ""
    before: str = NOTHING_KEPT
    after: str = NOTHING_KEPT
    names: list[tuple[str, int]] = field(default_factory=list)  # as they are now
    is_kept: bool = False

    def seal(self, outcome: RunOutcome) -> dict[str, Any]:
        """The names, for the sealed part."""
        changed = sorted(each.path for each in outcome.files)
        left_out = [list(each) for each in outcome.skipped]
        if not self.is_kept:
            left_out += [[path, "the call did not succeed"] for path in [*changed, *outcome.gone]]
        return {
            "written": changed if self.is_kept else [],
            "removed": list(outcome.gone) if self.is_kept else [],
            "not_taken": left_out,
        }

    def describe(self) -> KeptToolFiles:
        return KeptToolFiles(
            group=self.group,
            scope=self.scope,
            before=self.before,
            after=self.after,
            count=len(self.names),
            bytes=sum(size for _, size in self.names),
            kept=self.is_kept,
        )


def describe_unchanged(invocation: Invocation, manifest: Manifest, before: Sequence[TenantFile]) -> ToolFilesChange:
    """Of a call that did not succeed, or was a trial: what was there is there."""
    state = manifest.state
    assert state is not None
    digest = compute_files_digest(before, tenant_id=invocation.tenant_id)
    names = [(each.path, len(each.content)) for each in before]
    return ToolFilesChange(str(state["scope"]), manifest.group, digest, digest, names)


def keep_tool_files(
    invocation: Invocation, manifest: Manifest, outcome: RunOutcome, before: Sequence[TenantFile]
) -> ToolFilesChange:
    """Replace what was kept by what a run has left, in the transaction of its End; all of it or, by a problem, nothing."""
    owner, change = FilesOwner.of_call(invocation, manifest), describe_unchanged(invocation, manifest, before)
    gone = {*outcome.gone, *(each.path for each in outcome.files)}
    files = sorted([*(each for each in before if each.path not in gone), *outcome.files], key=lambda each: each.path)
    _check_fit(manifest, outcome, files)
    change.after = compute_files_digest(files, tenant_id=invocation.tenant_id)
    change.names, change.is_kept = [(each.path, len(each.content)) for each in files], True
    Tenant.objects.select_for_update(no_key=True).get(pk=owner.tenant_id)  # two writers are not to find the same room
    row = owner.rows().select_for_update().first()
    if (row.fingerprint if row is not None else NOTHING_KEPT) != change.before:
        raise ToolFilesChanged(
            f"The files that {manifest.group} keeps were changed while the call ran. The tool has run; what it left is not kept."
        )
    if change.after == change.before:
        return change
    if not files:
        owner.rows().delete()
        return change
    key = find_values_key(invocation) if owner.scope == "person" else None
    fields = _seal(owner, files, key) | {
        "names": change.names,
        "size": sum(size for _, size in change.names),
        "fingerprint": change.after,
        "changed_by": invocation.wire_id,
    }
    _check_room(owner, len(fields["ciphertext"]))
    ToolFiles.objects.update_or_create(**owner.fields(), defaults=fields)
    return change


def _check_fit(manifest: Manifest, outcome: RunOutcome, files: Sequence[TenantFile]) -> None:
    """Kept is all that a call has left, so what cannot be kept refuses the whole. Names are for the call's log."""
    state = manifest.state
    assert state is not None
    size = sum(len(each.content) for each in files)
    reasons = sorted({why for _, why in outcome.skipped})
    if len(files) > state["max_files"] or size > state["max_bytes"]:
        reasons.append("more than may be kept")
    paths = {each.path for each in files}
    if any(str(above) in paths for path in paths for above in PurePosixPath(path).parents):
        reasons.append("a file in the place of a folder")  # which no call could be given
    if reasons:
        raise ToolFilesRefused(
            f"{manifest.id} left files that cannot be kept: {'; '.join(reasons)}. It may keep {state['max_files']} plain files of "
            f"{state['max_bytes']:,} bytes together. The tool has run; what was kept before is as it was.",
            details={"reasons": reasons, "max_files": state["max_files"], "max_bytes": state["max_bytes"]},
        )


def _check_room(owner: FilesOwner, size: int) -> None:
    """``size``: encrypted, with the names."""
    others = ToolFiles.objects.filter(tenant_id=owner.tenant_id).exclude(pk__in=owner.rows().values("pk"))
    taken = sum_tool_file_bytes(others)
    taken += sum_file_bytes(StoredFile.objects.filter(tenant_id=owner.tenant_id))
    if taken + max(size, LEAST_BYTES) > settings.TOOLHUB_FILES_MAX_MB * MIB:
        raise FilesFull(
            f"There is no room for what {owner.group} would keep: the files of a tenant may take "
            f"{settings.TOOLHUB_FILES_MAX_MB} MiB. The tool has run; what was kept before is as it was.",
            remedy="Check what the call did outside. Empty what tools keep, remove files that nobody needs, or ask "
            "the operator of the hub for more room.",
        )


def _seal(owner: FilesOwner, files: Sequence[TenantFile], key: SubjectKey | None) -> dict[str, Any]:
    """A person's under the key of that person, so that they go with it; others under the hub's."""
    data_key, nonce = AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
    if key is None:
        key_id, wrapped = get_keystore().wrap(data_key, context=owner.tenant_id.bytes)
    else:
        key_id, wrapped = "", wrap_under(key, data_key)
    return {
        "subject_key": key,
        "key_id": key_id,
        "wrapped_key": wrapped,
        "nonce": nonce,
        "ciphertext": AESGCM(data_key).encrypt(nonce, pack_files(files), _context(owner)),
    }


@transaction.atomic
def empty_tool_files(*, files_id: UUID, by: Principal) -> ToolFiles:
    """Take away what is kept; the next call finds nothing. A call that runs meanwhile keeps nothing either."""
    row = ToolFiles.objects.select_for_update().filter(tenant_id=by.tenant_id, pk=files_id).first()
    if row is None:
        raise NoSuchFile("These files are not kept any more.")
    evidence.record(kind=Kind.FILE_REMOVED, subject=row.wire_id, actor=by, data=FileContent(content=row.fingerprint))
    row.delete()
    return row
