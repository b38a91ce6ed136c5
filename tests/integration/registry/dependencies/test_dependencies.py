"""From the names in a manifest to what a call finds: is each step written down, and is nothing built for a call?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.utils import IntegrityError
from django.test.utils import CaptureQueriesContext

from evidence.models import Fact
from kernel.problems import Conflict
from registry.dependencies import find_dependency_folder, states, store
from registry.dependencies.builder import Builder
from registry.dependencies.failures import Failure
from registry.models import Decision, Dependencies, Tool, ToolVersion
from registry.problems import ManifestInvalid, NotAcknowledged
from registry.versions import services
from registry.versions.bump import changes_now
from tests.support.calls import assert_problem
from tests.support.dependencies import FIRST, approve, build_all, enabled, facts_of, row_of, state_of
from tests.support.manifests import manifest
from tests.support.wheels import line, make_wheel
from unitools.dependency_locks import compute_lock_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


@pytest.mark.req("SVC-9")
def test_a_version_goes_from_a_name_to_a_folder_and_each_step_is_a_fact(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    seen = [state_of(version)]
    build_all()
    seen.append(state_of(version))
    assert store.list_folders() == set()  # nobody uses it yet
    enabled(version, operator)
    Builder().pass_once()
    seen.append(state_of(version))

    found = find_dependency_folder(version)

    assert seen == ["resolving", "locked", "ready"]
    assert facts_of(version) == ["locked", "queued", "started", "built"]
    assert found is not None
    digest, folder = found
    assert digest == f"sha256:{folder.name}"
    assert (folder / "first.py").is_file()
    assert (folder / "second.py").is_file()
    row = row_of(version)
    assert (row.progress, row.failure, row.lease_until, row.builder) == ([], {}, None, "")
    assert row.size_bytes == store.folder_size(folder)


def test_without_dependencies_there_is_nothing_to_build(enable: Callable[..., Tool], wheels: Path) -> None:
    version = enable().current
    assert version is not None

    with CaptureQueriesContext(connection) as queries:
        assert find_dependency_folder(version) is None

    assert len(queries) == 0
    assert not Builder().pass_once()
    assert not store.store_root().exists()


@pytest.mark.req("SVC-9", "TOOLS-9")
def test_the_lock_is_part_of_what_is_approved(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)

    with pytest.raises(Conflict, match="not known yet which code"):
        approve(version, operator)
    build_all()
    approve(version, operator)

    row = row_of(version)
    assert row.lock_digest == compute_lock_digest(row.lock)
    locked, reviewed = (Fact.objects.get(kind=kind) for kind in ("dependencies.locked", "tool.reviewed"))
    for fact in (locked, reviewed):
        assert row.lock_digest.encode() in bytes(fact.leaf)


def test_a_lock_in_the_manifest_is_taken_as_it_is(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    first = make_wheel(wheels, "first", "2.0")

    version = submit(dependencies=["first==2.0"], dependency_lock=[line("first", first, "2.0")])

    assert state_of(version) == "locked"
    assert row_of(version).lock == [line("first", first, "2.0")]
    enabled(version, operator)
    build_all()
    assert state_of(version) == "ready"
    assert facts_of(version) == ["locked", "queued", "started", "built"]


def test_a_lock_that_does_not_hold_what_is_named_is_refused(developer: Person) -> None:
    document = manifest(dependencies=FIRST, dependency_lock=[line("second", "a" * 64)])

    with pytest.raises(ManifestInvalid, match="does not hold first"):
        services.submit_version(document=document, by=developer.by)


@pytest.mark.req("SVC-9", "TOOLS-9")
def test_what_the_hub_found_is_compared_with_the_version_before(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    build_all()
    approve(version, operator)
    make_wheel(wheels, "second", code="VERSION = 'another'\n")
    make_wheel(wheels, "third")

    after = submit(version="1.0.1", dependencies=[*FIRST, "third==1.0"])
    before = changes_now(after)[1]
    build_all()
    _, changes = changes_now(after)

    assert {each["kind"] for each in before} == {"dependencies.added"}
    assert {(each["kind"], each["bump"], each["risk"]) for each in changes} == {
        ("dependencies.added", "patch", "medium"),
        ("lock.added", "patch", "medium"),
        ("lock.files_replaced", "patch", "high"),
    }
    with pytest.raises(NotAcknowledged):
        approve(after, operator)
    seen = [each["id"] for each in changes]
    services.review_version(version_id=after.pk, decision=Decision.APPROVE, note="", acknowledged=seen, by=operator.by)


def test_a_lock_of_the_author_is_compared_with_the_one_that_the_hub_found(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    build_all()
    approve(version, operator)

    after = submit(version="1.0.1", dependencies=FIRST, dependency_lock=row_of(version).lock)

    assert [each["kind"] for each in changes_now(after)[1]] == []


@pytest.mark.req("SVC-9", "SVC-4")
def test_a_call_is_refused_until_they_are_there_and_never_builds_them(
    submit: Callable[..., ToolVersion],
    operator: Person,
    lock: list[str],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(version, operator)
    grant()

    refused = caller.invoke(ECHO, {"text": "x"})

    assert_problem(refused, 503, "SANDBOX.DEPENDENCIES_NOT_READY")
    error = refused.json()["error"]
    assert (error["retryable"], refused.headers["Retry-After"]) == ("yes", "5")
    assert error["details"] == {"state": "locked", "version": "1.0.0", "failure": None}
    assert store.list_folders() == set()
    build_all()
    assert caller.invoke(ECHO, {"text": "x"}).status_code == 200


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_refusal_says_how_far_they_are_and_what_went_wrong(
    submit: Callable[..., ToolVersion],
    operator: Person,
    lock: list[str],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
    dry_run: bool,
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock, dry_run=True)
    enabled(version, operator)
    grant()
    states.queue_wanted()
    claimed = states.claim_next()
    assert claimed is not None
    states.report_progress(claimed, ["Installing from the lock", "Downloading first-1.0-py3-none-any.whl"])

    working = caller.invoke(ECHO, {"text": "x"}, dry_run=dry_run).json()["error"]
    states.write_failed(claimed, Failure("index_unreachable", "The package index does not answer.", "Set it."))
    failed = caller.invoke(ECHO, {"text": "x"}, dry_run=dry_run)

    assert "are being built. Downloading first-1.0-py3-none-any.whl." in working["message"]
    error = failed.json()["error"]
    assert "could not be built. The package index does not answer." in error["message"]
    assert error["details"]["failure"] == "index_unreachable"
    assert "retry" in error["remedy"]
    assert failed.headers["Retry-After"] == "60"


def test_a_call_pays_one_question_for_dependencies_and_none_without(
    ready: ToolVersion, enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    plain = enable("write")
    grant()

    def asked(tool: str) -> int:
        caller.post(
            f"/tools/{tool}/preflight",
            {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}},
        )
        with CaptureQueriesContext(connection) as queries:
            caller.post(
                f"/tools/{tool}/preflight",
                {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}},
            )
        return len([each for each in queries if "registry_dependencies" in each["sql"]])

    assert (asked(plain.name), asked(ECHO)) == (0, 1)


@pytest.mark.req("SVC-9")
def test_what_failed_says_why_and_is_tried_again_by_hand(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=["later==1.0"])
    build_all()

    row = row_of(version)
    assert (row.state, row.failure["code"]) == ("unresolved", "unknown_package")
    build_all()
    assert row_of(version).state == "unresolved"  # nobody has mended anything
    make_wheel(wheels, "later")
    services.retry_dependencies(version_id=version.pk, by=operator.by)
    build_all()

    row = row_of(version)
    assert (row.state, row.failure) == ("locked", {})
    assert facts_of(version) == ["unresolved", "retried", "locked"]
    with pytest.raises(Conflict, match="nothing to try again"):
        services.retry_dependencies(version_id=version.pk, by=operator.by)


def test_what_could_not_be_built_is_tried_again_with_the_same_lock(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path, lock: list[str]
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(version, operator)
    wheel = wheels / "first-1.0-py3-none-any.whl"
    kept = wheel.read_bytes()
    make_wheel(wheels, "first", code="TAMPERED = True\n")
    build_all()
    assert row_of(version).failure["code"] == "hash_mismatch"

    wheel.write_bytes(kept)
    services.retry_dependencies(version_id=version.pk, by=operator.by)
    build_all()

    assert (row_of(version).state, row_of(version).lock) == ("ready", lock)
    assert facts_of(version) == ["locked", "queued", "started", "failed", "retried", "started", "built"]


def test_nobody_else_tries_it_again(submit: Callable[..., ToolVersion], stranger: Person, wheels: Path) -> None:
    version = submit(dependencies=["later==1.0"])
    build_all()

    with pytest.raises(ToolVersion.DoesNotExist):
        services.retry_dependencies(version_id=version.pk, by=stranger.by)
    assert state_of(version) == "unresolved"


def test_a_version_that_was_refused_is_not_resolved(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    services.review_version(version_id=version.pk, decision=Decision.REFUSE, note="no", by=operator.by)

    build_all()

    assert state_of(version) == "resolving"


def test_the_database_holds_no_built_dependencies_without_a_lock(submit: Callable[..., ToolVersion]) -> None:
    version = submit(dependencies=FIRST)

    with pytest.raises(IntegrityError):
        Dependencies.objects.filter(version=version).update(state="ready")
