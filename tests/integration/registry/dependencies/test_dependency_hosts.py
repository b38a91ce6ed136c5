"""Dependency hosts: who builds dependencies, on which hosts, and what is taken away again?"""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from access.roles import Role
from registry.dependencies import build_steps, builder, find_dependency_folder, states, store
from registry.dependencies.builder import Builder
from registry.dependencies.failures import Failure
from registry.installations import services as installations
from registry.models import Dependencies, ToolVersion
from registry.problems import DependenciesNotReady
from registry.tools import lifecycle
from registry.versions import services
from tests.conftest import make_person
from tests.support.dependencies import FIRST, build_all, enabled, facts_of, row_of, state_of
from tests.support.manifests import manifest
from tests.support.wheels import line, make_wheel, sha256_of
from toolhub.management.commands import doctor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


# Who is at it.


def test_one_process_is_at_it_and_a_lost_one_leaves_it_to_others(
    submit: Callable[..., ToolVersion], wheels: Path
) -> None:
    version = submit(dependencies=FIRST)
    first = states.claim_next()
    assert first is not None
    assert states.claim_next() is None

    Dependencies.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    second = states.claim_next()

    assert second is not None
    assert not states.report_progress(first, ["x"])
    assert not states.write_lock(first, [line("first", "a" * 64)])
    assert not states.write_failed(first, Failure("x", "x", "x"))
    assert states.report_progress(second, ["y"])
    assert row_of(version).progress == ["y"]


def test_who_submits_many_is_in_nobodys_way(submit: Callable[..., ToolVersion], stranger: Person, wheels: Path) -> None:
    mine = [submit(dependencies=FIRST, version=f"1.0.{number}") for number in range(3)]
    theirs = services.submit_version(document=manifest("write", dependencies=FIRST), by=stranger.by)

    assert [claimed.version for claimed in iter(states.claim_next, None)] == [mine[0], theirs, *mine[1:]]

    Dependencies.objects.update(lease_until=None)
    Dependencies.objects.filter(version=mine[0]).update(state="unresolved", changed_at=timezone.now())
    again = states.claim_next()
    assert again is not None
    assert again.version == theirs


def test_what_loses_its_worker_again_and_again_is_given_up(submit: Callable[..., ToolVersion], wheels: Path) -> None:
    version = submit(dependencies=FIRST)
    for _ in range(states.MAX_ATTEMPTS):
        assert states.claim_next() is not None
        Dependencies.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    assert states.claim_next() is None
    assert (state_of(version), row_of(version).failure["code"]) == ("unresolved", "worker_lost")


def test_a_process_that_is_told_to_stop_gives_it_back(submit: Callable[..., ToolVersion], wheels: Path) -> None:
    version = submit(dependencies=FIRST)

    Builder(is_stopped=lambda: True).pass_once()

    row = row_of(version)
    assert (row.state, row.attempt, row.lease_until) == ("resolving", 0, None)
    build_all()
    assert state_of(version) == "locked"


@pytest.mark.unmapped
def test_a_mistake_of_ours_is_written_down_and_the_loop_goes_on(
    submit: Callable[..., ToolVersion], wheels: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    version = submit(dependencies=FIRST)
    monkeypatch.setattr(build_steps, "resolve_requirements", lambda *_, **__: 1 / 0)

    build_all()

    assert (state_of(version), row_of(version).failure["code"]) == ("unresolved", "other")
    assert "ZeroDivisionError" in caplog.text


def test_a_host_without_a_folder_to_build_in_says_so(
    submit: Callable[..., ToolVersion], wheels: Path, settings: Any
) -> None:
    version = submit(dependencies=FIRST)
    (wheels / "file").write_text("")
    settings.TOOLHUB_DEPENDENCY_DIR = str(wheels / "file" / "deps")

    build_all()

    failure = row_of(version).failure
    assert failure["code"] == "store_unusable"
    assert "TOOLHUB_DEPENDENCY_DIR" in failure["remedy"]


# Several hosts, and what is not needed any more.


@pytest.mark.req("SVC-9")
def test_another_host_builds_the_same_folder_before_it_takes_calls(
    ready: ToolVersion, settings: Any, tmp_path: Path
) -> None:
    here = find_dependency_folder(ready)
    assert here is not None
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "another host")

    with pytest.raises(DependenciesNotReady, match="does not have the dependencies"):
        find_dependency_folder(ready)
    build_all()
    there = find_dependency_folder(ready)

    assert there is not None
    assert (there[0], there[1].name) == (here[0], here[1].name)
    assert there[1] != here[1]
    assert facts_of(ready)[-1] == "built"  # once: it was no decision


def test_what_another_host_cannot_build_is_not_taken_from_the_first(
    ready: ToolVersion, settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "another host")
    settings.TOOLHUB_WHEELHOUSE = str(tmp_path / "empty")
    (tmp_path / "empty").mkdir()

    with caplog.at_level("WARNING", logger="toolhub.builder"):
        build_all()

    assert state_of(ready) == "ready"
    assert "cannot build them (unknown_package)" in caplog.text


def test_two_versions_with_one_lock_share_a_folder(
    ready: ToolVersion, submit: Callable[..., ToolVersion], operator: Person, lock: list[str]
) -> None:
    other = submit("write", dependencies=FIRST, dependency_lock=lock)
    enabled(other, operator)
    build_all()

    assert find_dependency_folder(other) == find_dependency_folder(ready)
    assert len(store.list_folders()) == 1


@pytest.mark.req("TOOLS-1", "SVC-9")
def test_whoever_installs_a_shared_tool_makes_it_wanted(
    submit: Callable[..., ToolVersion], operator: Person, foreign_tenant: Tenant, lock: list[str]
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(version, operator)
    lifecycle.share_tool(name=ECHO, reason="for a test", by=operator.by)
    installations.remove_installation(name=ECHO, reason="for a test", by=operator.by)
    build_all()
    assert state_of(version) == "locked"
    sten = make_person(foreign_tenant, "sten", Role.OPERATOR)

    installations.install_tool(name=ECHO, reason="for a test", by=sten.by)
    build_all()

    assert state_of(version) == "ready"


def test_what_nobody_has_used_for_a_week_is_removed_and_built_again_when_somebody_does(
    ready: ToolVersion, operator: Person
) -> None:
    installations.remove_installation(name=ECHO, reason="for a test", by=operator.by)
    assert states.release_unused() == 0
    assert row_of(ready).idle_since is not None
    Dependencies.objects.update(idle_since=timezone.now() - states.KEPT_UNUSED)

    assert states.release_unused() == 1
    assert state_of(ready) == "locked"
    assert builder.collect_folders(older_than=timedelta(0)) == [store.folder_of_lock(row_of(ready).lock_digest).name]
    installations.install_tool(name=ECHO, reason="again", by=operator.by)
    build_all()

    assert find_dependency_folder(ready) is not None
    assert facts_of(ready) == ["locked", "queued", "started", "built", "released", "queued", "started", "built"]


def test_what_is_used_again_in_time_is_kept(ready: ToolVersion, operator: Person) -> None:
    installations.remove_installation(name=ECHO, reason="for a test", by=operator.by)
    states.release_unused()
    installations.install_tool(name=ECHO, reason="for a test", by=operator.by)
    Dependencies.objects.update(idle_since=timezone.now() - states.KEPT_UNUSED)

    assert states.release_unused() == 0
    assert builder.collect_folders(older_than=timedelta(0)) == []
    assert row_of(ready).idle_since is None


# What operators type.


def said_by(*options: str) -> tuple[str, int]:
    out, status = StringIO(), 0
    try:
        call_command("dependencies", *options, stdout=out)
    except SystemExit as ended:
        status = int(str(ended.code))
    return out.getvalue(), status


def test_the_command_builds_here_and_now_and_says_how_far_each_is(
    submit: Callable[..., ToolVersion], operator: Person, lock: list[str]
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(version, operator)

    before = said_by()
    text, status = said_by("--build")

    assert f"locked      {ECHO} 1.0.0\n" in before[0]
    assert "Taking first-1.0-py3-none-any.whl" in text
    assert f"ready       {ECHO} 1.0.0  {store.folder_of_lock(row_of(version).lock_digest).name[:16]}" in text
    assert (before[1], status) == (0, 0)


def test_the_command_says_what_failed_and_exits_with_2(submit: Callable[..., ToolVersion], wheels: Path) -> None:
    submit(dependencies=["later==1.0"])

    text, status = said_by("--build")

    assert "unresolved" in text
    assert "No index that this hub may ask has later." in text
    assert status == 2


def test_the_command_says_what_this_host_lacks_and_removes_what_it_does_not_need(
    ready: ToolVersion, settings: Any, tmp_path: Path
) -> None:
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "another host")

    assert f"ready       {ECHO} 1.0.0  not on this host" in said_by()[0]
    (store.store_root() / "crashed.part").mkdir(parents=True)
    assert said_by("--collect")[1] == 0
    assert not (store.store_root() / "crashed.part").exists()


def test_the_command_says_when_there_is_no_folder_to_use(wheels: Path, settings: Any) -> None:
    (wheels / "file").write_text("")
    settings.TOOLHUB_DEPENDENCY_DIR = str(wheels / "file")

    with pytest.raises(CommandError, match="cannot be used"):
        call_command("dependencies", "--collect")


def test_doctor_tells_what_this_host_lacks(ready: ToolVersion, settings: Any, tmp_path: Path) -> None:
    whole = doctor.packages()
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "another host")

    assert whole == "locks of tools in use: 1; not installed on this host: 0"
    lacking = doctor.packages()
    assert "not installed on this host: 1; a worker here installs them into" in lacking
    assert isinstance(lacking, doctor.Remark)
    assert not isinstance(whole, doctor.Remark)


def test_doctor_notes_a_folder_of_wheels_that_is_not_there(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a host without workers nothing is wrong with that."""
    monkeypatch.setattr(doctor, "CHECKS", (doctor.packages,))
    settings.TOOLHUB_WHEELHOUSE = str(tmp_path / "nowhere")
    output = StringIO()

    call_command("doctor", stdout=output)

    assert output.getvalue().startswith("note   packages ")
    assert f"TOOLHUB_WHEELHOUSE names {tmp_path / 'nowhere'}, which is not a folder" in output.getvalue()


def test_what_another_tool_asks_of_the_same_lock_stops_no_host(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path, settings: Any, tmp_path: Path
) -> None:
    make_wheel(wheels, "first", requires=['second; extra == "plus"'])
    lock = [line("first", sha256_of(wheels, "first"))]
    asks_more = submit("write", dependencies=["first[plus]==1.0"], dependency_lock=lock)
    good = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(good, operator)
    build_all()
    assert state_of(good) == "ready"
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "another host")

    build_all()

    assert find_dependency_folder(good) is not None
    enabled(asks_more, operator)
    build_all()
    assert (state_of(asks_more), row_of(asks_more).failure["code"]) == ("failed", "incomplete")
