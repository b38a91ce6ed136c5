from __future__ import annotations
import time
import pytest
from datetime import UTC, datetime
from typing import Any
from access.capabilities import Capabilities
from invocations import stored_files
from invocations.models import StoredFile, SandboxHost
pytestmark = pytest.mark.django_db

def reach(*rules):
    return Capabilities.from_json({"fs": [{"path": p, "actions": a.split()} for p, a in rules]})

def test_nul(caller: Any, settings: Any) -> None:
    for f in (lambda: stored_files.read_file(path="/data/a\0b", by=caller.by),):
        try: f()
        except Exception as e: print("NUL read:", type(e), e)
    try:
        print(list(StoredFile.objects.filter(path__startswith="a\0/")))
    except Exception as e: print("NUL below:", type(e), e)

def test_partial(caller: Any) -> None:
    t = caller.by.tenant_id
    base = stored_files._sealed(t, "/data/private/x", b"")
    StoredFile.objects.bulk_create([StoredFile(tenant_id=t, path=f"/data/private/{i}", changed_by="x", **base) for i in range(10_000)])
    for i in range(50):
        stored_files.store_file(path=f"/data/in{i}", content=b"x", by=caller.by)
    within = reach(("/data", "read"), ("/data/private", "write"))
    got = stored_files.files_for(within, tenant_id=t)
    print("PARTIAL: may read 50, got", len(got), "rows of 0 bytes stored:", StoredFile.objects.filter(size=0).count())

def test_lost_update(caller: Any) -> None:
    from dataclasses import replace
    from invocations.sandbox.base import Outcome, Status, TenantFile
    t = caller.by.tenant_id
    stored_files.store_file(path="/data/l", content=b"old", by=caller.by)
    within = reach(("/data", "read write create delete"))
    before = stored_files.files_for(within, tenant_id=t)
    stored_files.store_file(path="/data/l", content=b"NEW, by a person while the run goes on", by=caller.by)
    said = stored_files.keep_files(Outcome(Status.OK, gone=("/data/l",)), within, before, tenant_id=t, by="agt")
    print("LOST: run removed its old copy; now there:", list(StoredFile.objects.values_list("path", flat=True)), said)

def test_rename_when_full(caller: Any, settings: Any) -> None:
    from invocations.sandbox.base import Outcome, Status, TenantFile
    settings.TOOLHUB_FILES_MAX_MB = 1
    t = caller.by.tenant_id
    stored_files.store_file(path="/data/big", content=b"x" * 600_000, by=caller.by)
    within = reach(("/data", "read write create delete"))
    before = stored_files.files_for(within, tenant_id=t)
    try:
        stored_files.keep_files(Outcome(Status.OK, files=(TenantFile("/data/new", b"x" * 600_000),), gone=("/data/big",)), within, before, tenant_id=t, by="agt")
        print("RENAME ok")
    except Exception as e: print("RENAME:", type(e), e)

def test_hosts(caller: Any) -> None:
    from invocations.sandbox_hosts import hosts
    from invocations.sandbox.figures import Figures
    from invocations.sandbox.pool import Pool
    from invocations.sandbox.slots import Caps
    snap = Figures().snapshot(Pool(Caps()), Caps(), {}).to_json() | {"new_figure": 1}
    SandboxHost.objects.create(name="other", seen_at=datetime.now(UTC), snapshot=snap)
    try: hosts(datetime.now(UTC)); print("HOSTS ok")
    except Exception as e: print("HOSTS:", type(e), e)
