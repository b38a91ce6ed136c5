"""Erasures: how do tests leave values of a person everywhere, forget the person, and look for what is left?"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connection

from evidence import services as evidence
from evidence.erasures import services as erasures
from evidence.models import Erasure, Snapshot, SubjectKey
from evidence.problems import KeyUnavailable, ValuesErased
from invocations.artifacts import services as artifacts
from invocations.artifacts.models import ArtifactContent
from invocations.files.services import open_file as opened_file
from invocations.models import StoredFile
from invocations.tool_files.models import ToolFiles
from invocations.tool_files.services import open_files as open_tool_files
from toolhub.database.row_level_security import OURS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel.principal import Principal

REASON = "The person has asked to be forgotten."


def forget(user_id: str, *, by: Principal, steps: int | None = None) -> Erasure:
    """As a person does it, and as far as a keeper takes it."""
    _, confirm = erasures.preview_erasure(user_id=user_id, by=by)
    asked = erasures.erase_subject(user_id=user_id, reason=REASON, confirm=confirm, by=by)
    if steps is None:
        erasures.advance_erasures()
    else:
        for _ in range(steps):
            erasures.advance_erasure(asked.pk)
    asked.refresh_from_db()
    return asked


def dump() -> str:
    """The whole database as bytes: what `pg_dump` writes, or the file of SQLite with its log."""
    if connection.vendor == "postgresql":
        said = connection.settings_dict
        url = f"postgresql://{said['USER']}:{said['PASSWORD']}@{said['HOST']}:{said['PORT']}/{said['NAME']}"
        done = subprocess.run(["pg_dump", "--inserts", url], capture_output=True, check=True)
        return done.stdout.decode()
    path = Path(connection.settings_dict["NAME"])
    files = [str(each) for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]
    # By another process: who closes a file that was read here takes SQLite's locks on it from all connections of this one.
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout.decode("latin-1")


def cells() -> Iterator[str]:
    """Every value of every row of our tables as text, binary ones as they are."""
    for model in apps.get_models():
        if model._meta.app_label not in OURS:
            continue
        for row in model._base_manager.values_list():
            for cell in row:
                yield bytes(cell).decode("latin-1") if isinstance(cell, bytes | memoryview) else str(cell)


def opened() -> str:
    """All that the keys of this hub open, by whatever way is left."""
    found = [json.dumps(evidence.open_values(row)) for row in Snapshot.objects.all() if _opens(row)]
    found += [artifacts.decrypt_content(row).decode("latin-1") for row in ArtifactContent.objects.all() if _opens(row)]
    found += [opened_file(row).decode("latin-1") for row in StoredFile.objects.all() if _opens(row)]
    found += [
        each.content.decode("latin-1")
        for row in ToolFiles.objects.all()
        if _opens(row)
        for each in open_tool_files(row)
    ]
    return "\n".join(found)


def _opens(row: Any) -> bool:
    try:
        match row:
            case Snapshot():
                evidence.open_values(row)
            case ArtifactContent():
                artifacts.decrypt_content(row)
            case StoredFile():
                opened_file(row)
            case ToolFiles():
                open_tool_files(row)
    except (ValuesErased, KeyUnavailable):
        return False
    return True


def wrapped_keys() -> list[bytes]:
    """Of persons who are not forgotten."""
    return [bytes(key) for key in SubjectKey.objects.filter(destroyed_at=None).values_list("wrapped_key", flat=True)]
