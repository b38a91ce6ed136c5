"""Sandbox runtimes: is what was seen of a runtime said plainly, kept no longer than it is true, and does it keep untrusted code
out?
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Profile, RunOutcome, RunStatus, SandboxUnavailable
from invocations.sandbox.engine import EngineError
from invocations.sandbox.isolation import check_results, isolation_check
from invocations.sandbox.isolation.check_results import IsolationChecks
from invocations.sandbox.isolation.echo_socket import EchoSocket
from invocations.sandbox.isolation.isolation_check import IsolationResult, Wall
from invocations.sandbox.isolation.runtime_lines import DoctorLine, describe_runtimes
from invocations.sandbox.isolation.runtimes import Runtimes, explain_refusal

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = ("shared", "fresh", "single", "cold")
GOOD = IsolationResult("runc", (Wall("memory", True, "ended"), Wall("network", True, "lo")), "socket", LEVELS, at=1.0)
FALLEN, UNTOLD = Wall("memory", False, "not ended"), Wall("memory", None, "cannot be tried")
SPARED = Wall("processor", None, "the machine is busy", needed_for_untrusted=False)
GONE = IsolationResult("kata", why="The engine knows no runtime 'kata'.")


def with_walls(*walls: Wall) -> IsolationResult:
    return replace(GOOD, walls=walls)


# Untrusted code.


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (with_walls(FALLEN), "the wall “memory” does not hold: not ended."),
        (with_walls(UNTOLD), "the wall “memory” could not be verified: cannot be tried."),
        (with_walls(GOOD.walls[0], replace(FALLEN, name="a"), replace(FALLEN, name="b")), "“a” (and 1 more) does not"),
        (GONE, "kata"),
    ],
)
def test_untrusted_code_is_kept_out_with_a_sentence_that_names_the_wall(seen: IsolationResult, said: str) -> None:
    assert said in explain_refusal(seen)
    with pytest.raises(SandboxUnavailable) as caught:
        Runtimes({"untrusted": seen.runtime}, lambda _: seen).choose(Profile(untrusted=True))
    assert said in str(caught.value)


@pytest.mark.req("TOOLS-17")
def test_a_wall_that_it_can_do_without_keeps_nothing_out() -> None:
    runtimes = Runtimes({"default": "runc", "untrusted": "runsc"}, lambda _: with_walls(*GOOD.walls, SPARED))

    assert runtimes.choose(Profile(untrusted=True)) == "runsc"


@pytest.mark.req("TOOLS-17")
def test_without_a_runtime_set_aside_untrusted_code_does_not_run() -> None:
    runtimes = Runtimes({"default": "runc"}, lambda _: GOOD)

    with pytest.raises(SandboxUnavailable, match="TOOLHUB_SANDBOX_RUNTIMES"):
        runtimes.choose(Profile(untrusted=True))


@pytest.mark.req("TOOLS-17")
def test_nobody_looks_at_walls_for_code_that_is_trusted() -> None:
    def never(_: str) -> IsolationResult:
        raise AssertionError

    assert Runtimes({}, never).choose(Profile()) == ""
    assert Runtimes({"default": "runsc"}, never).choose(Profile()) == "runsc"


# Levels.


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize(
    ("able", "levels"),
    [
        ({"counts_processes": True, "no_namespaces": ""}, LEVELS),
        ({"counts_processes": True, "no_namespaces": "unshare: EPERM"}, ("shared", "single", "cold")),
        ({"counts_processes": False, "no_namespaces": ""}, ("single", "cold")),
    ],
)
def test_a_level_is_offered_where_its_means_are(able: dict[str, Any], levels: tuple[str, ...]) -> None:
    assert isolation_check._levels(True, able) == levels
    assert isolation_check._levels(False, able) == ()


class Box:
    """An engine whose boxes say that all is well, and a sandbox that calls a tool at some levels only."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *refused: str, given: str = "") -> None:
        self.refused, self.given = refused, given
        monkeypatch.setattr(isolation_check, "run_probe", self._look)

    def _look(self, *_: object) -> dict[str, Any]:
        able = {"counts_processes": True, "unix_socket": False, "no_namespaces": "", "label": ""}
        return {"abilities": able, "walls": {"own user": (True, "7")}, "killed": True, "name_taken": True}

    def run(self, profile: Profile, call: object) -> RunOutcome:
        if profile.isolation in self.refused:
            return RunOutcome(RunStatus.START_FAILED, error_message=f"no {profile.isolation} today")
        falls = profile.isolation == "fresh"
        return RunOutcome(RunStatus.OK, value={"tool: w": [not falls, "seen"]}, level=self.given or profile.isolation)

    def examined(self, folder: Path) -> IsolationResult:
        box: Any = self
        return isolation_check.check_isolation(box, box, image="i", runtime="runc", run_dir=folder)


@pytest.mark.req("TOOLS-17")
def test_a_wall_that_falls_at_one_level_does_not_hold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = Box(monkeypatch).examined(tmp_path)

    assert [(wall.name, wall.detail) for wall in found.missing] == [("tool: w", "seen (level fresh)")]
    assert (found.levels, found.transport) == (LEVELS, "attach")


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("how", [{"refused": "fresh"}, {"given": "single"}])
def test_a_level_at_which_no_tool_is_called_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: dict[str, str]
) -> None:
    refused = [how["refused"]] if "refused" in how else []
    found = Box(monkeypatch, *refused, given=how.get("given", "")).examined(tmp_path)

    assert found.levels == ("shared", "single", "cold")
    assert found.missing == []
    assert [wall.name for wall in found.others] == ["user namespaces"]


@pytest.mark.req("TOOLS-17")
def test_where_no_tool_is_called_at_all_nothing_is_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Box(monkeypatch, "cold", "fresh").examined(tmp_path).levels == ()


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("name", ["x" * 120, "file/folder"])
def test_a_place_in_which_no_socket_can_be_made_is_no_obstacle(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with EchoSocket(tmp_path / name) as echo:
        assert echo.folder is None or list(echo.folder.iterdir()) == []


# What is remembered.


class Host:
    """An engine, and what a look at it finds."""

    url = "unix:///somewhere"
    image = "sha256:1"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, found: IsolationResult = GOOD) -> None:
        self.found, self.looks, self.now = found, 0, 1000.0
        self.kept_in = folder / "walls.json"
        monkeypatch.setattr(check_results, "check_isolation", self._examine)

    def _examine(self, *_: object, runtime: str, **__: object) -> IsolationResult:
        self.looks += 1
        return replace(self.found, runtime=runtime)

    def image_id(self, name: str) -> str:
        return self.image

    def close(self) -> None:
        pass

    def of(self, runtime: str = "runc", **more: Any) -> IsolationResult:
        """As another process would ask."""
        host: Any = self
        asked = IsolationChecks(
            host,
            image="i",
            make_sandbox=lambda _: host,
            run_dir=self.kept_in.parent,
            kept_in=self.kept_in,
            clock=lambda: self.now,
        )
        return asked.of(runtime, **more)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    return Host(monkeypatch, tmp_path)


@pytest.mark.req("TOOLS-17")
def test_what_holds_is_looked_at_once_for_each_runtime_and_image(host: Host) -> None:
    first = host.of()
    host.now += 10**6

    assert host.of() == first
    assert host.looks == 1
    host.of("runsc")
    host.image = "sha256:2"
    host.of()
    assert host.looks == 3
    assert host.of(anew=True).at == host.now
    assert host.looks == 4


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("found", [with_walls(FALLEN), GONE])
def test_what_does_not_hold_is_looked_at_again_soon(host: Host, found: IsolationResult) -> None:
    host.found = found
    host.of()
    host.of()
    assert host.looks == 1
    host.now += 61
    host.found = GOOD

    assert host.of().missing == []


@pytest.mark.req("TOOLS-17")
def test_after_the_machine_has_started_again_it_is_looked_at_again(
    host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host.of()
    boot = tmp_path / "boot"
    boot.write_text("another")
    monkeypatch.setattr(check_results, "_BOOT", boot)
    host.of()

    assert host.looks == 2


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"a": {"runtime": "runc", "colour": 1}}'])
def test_a_file_of_another_version_is_no_obstacle(host: Host, text: str) -> None:
    host.kept_in.write_text(text)

    assert host.of().runtime == "runc"
    assert host.of().runtime == "runc"
    assert host.looks == 1


# What doctor says.


class Known:
    def __init__(self, info: dict[str, Any] | None, *seen: IsolationResult) -> None:
        self._info, self._seen = info, {each.runtime: each for each in seen}
        self.anew: list[bool] = []
        self.engine = self

    def info(self) -> dict[str, Any]:
        if self._info is None:
            raise EngineError("gone")
        return self._info

    def of(self, runtime: str, *, anew: bool) -> IsolationResult:
        self.anew.append(anew)
        return self._seen[runtime]


def said(known: Any, names: dict[str, str], *, every: bool = False) -> list[DoctorLine]:
    return list(describe_runtimes(known, names, every=every))


PLAIN = {
    "KernelVersion": "6.1",
    "CgroupVersion": "2",
    "SecurityOptions": ["name=seccomp,profile=default"],
    "Runtimes": {"runc": {}},
}


@pytest.mark.req("TOOLS-17")
def test_one_line_says_that_all_is_well() -> None:
    known = Known(PLAIN, GOOD)

    first, host = said(known, {"default": "runc", "untrusted": "runc"})

    assert first.mark == "ok"
    assert first.said.startswith("runc (default and untrusted): 2 of 2 walls hold; shared, fresh, single, cold;")
    assert host.mark == "note"
    assert "no AppArmor" in host.said and "not remapped" in host.said and "runtimes runc" in host.said
    assert known.anew == [False]


@pytest.mark.req("TOOLS-17")
def test_each_wall_has_a_line_when_asked() -> None:
    known = Known(PLAIN, GOOD)
    lines = said(known, {"default": "runc", "untrusted": "runc"}, every=True)

    assert [line.said for line in lines if line.about == "wall"] == ["memory: ended", "network: lo"]
    assert known.anew == [True]


@pytest.mark.req("TOOLS-17")
def test_a_wall_that_fell_has_a_line_always_and_says_whether_it_is_needed() -> None:
    lines = said(Known(PLAIN, with_walls(FALLEN, SPARED)), {"default": "runc", "untrusted": "runc"})

    assert [(line.mark, line.about) for line in lines] == [
        ("WRONG", "runtime"), ("WRONG", "wall"), ("note", "wall"), ("note", "host"),
    ]  # fmt: skip
    assert lines[1].said == "memory does not hold: not ended"
    assert lines[2].said == "processor could not be verified (untrusted tools do without): the machine is busy"


@pytest.mark.req("TOOLS-17")
def test_a_runtime_that_cannot_be_looked_at_is_said_to_be_not_verified() -> None:
    lines = said(Known(PLAIN, replace(GOOD, runtime=""), GONE), {"untrusted": "kata"})

    assert [line.mark for line in lines if line.about == "runtime"] == ["ok", "WRONG"]
    assert "kata (untrusted): not verified on this host." in lines[1].said


@pytest.mark.req("TOOLS-17")
def test_that_no_runtime_is_set_aside_is_a_note() -> None:
    lines = said(Known(PLAIN, replace(GOOD, runtime="")), {})

    assert [line.mark for line in lines] == ["ok", "note", "note"]
    assert "TOOLHUB_SANDBOX_RUNTIMES" in lines[1].said


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (["name=apparmor"], "AppArmor;"),
        (["name=selinux", "name=userns"], "users are remapped"),
        (["name=rootless"], "runs without root"),
    ],
)
def test_what_the_host_has_besides_is_said_and_is_no_wall(options: list[str], fact: str) -> None:
    host = said(Known(PLAIN | {"SecurityOptions": options}, GOOD), {"default": "runc", "untrusted": "runc"})[-1]

    assert fact in host.said
    assert host.mark == "note"


@pytest.mark.req("TOOLS-17")
def test_an_engine_that_goes_away_meanwhile_is_no_crash() -> None:
    assert said(Known(None, GOOD), {"default": "runc", "untrusted": "runc"})[-1] == DoctorLine("WRONG", "host", "gone")
