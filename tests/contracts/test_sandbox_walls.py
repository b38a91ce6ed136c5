"""Sandbox walls: does every wall stand on this host, and would the probe see it if one did not?

Each look is shown to bite: in a box of which one thing was asked otherwise, it is that wall which does not hold.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Profile, RunStatus, SandboxUnavailable
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.engine import ContainerNameTaken, Engine
from invocations.sandbox.isolation import isolation_check
from invocations.sandbox.isolation.check_results import IsolationChecks
from invocations.sandbox.isolation.probe import container, tool
from invocations.sandbox.isolation.runtime_lines import describe_runtimes
from invocations.sandbox.isolation.runtimes import Runtimes
from sandbox.image import image_name
from tests.support.box_driver import DrivenBox
from tests.support.sandboxes import call_of, docker_sandbox, package_of, run_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from invocations.sandbox.isolation.isolation_check import IsolationResult

Host = dict[str, Any]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def image(engine: Engine) -> str:
    sandbox = docker_sandbox()
    sandbox.close()
    return engine.image_id(sandbox.image)


@pytest.fixture(scope="module")
def examined(engine: Engine, image: str, tmp_path_factory: pytest.TempPathFactory) -> IsolationResult:
    sandbox = docker_sandbox()
    found = isolation_check.check_isolation(
        engine, sandbox, image=image, runtime="", run_dir=tmp_path_factory.mktemp("run")
    )
    sandbox.close()
    return found


def look(
    engine: Engine, image: str, change: Callable[[Host], object], looks: str = "box", only: Iterable[str] = ()
) -> set[str]:
    """The walls that do not stand in a box that is not as it was asked for."""
    while True:
        config = isolation_check.build_container_request(image, "")
        asked = isolation_check.build_probe_request(config, looks, only=only)
        change(config)
        try:
            found = isolation_check.run_probe(engine, config, asked)["walls"]
        except ContainerNameTaken:
            continue
        return {name for name, (holds, _) in found.items() if holds is not True}


@pytest.mark.req("SVC-6", "SVC-10")
def test_every_wall_stands_on_this_host(examined: IsolationResult) -> None:
    assert examined.why == ""
    assert [wall for wall in examined.others if wall.needed_for_untrusted] == []
    assert len(examined.walls) >= 35
    assert all(wall.detail for wall in examined.walls)
    assert set(isolation_check.SPARE) <= {wall.name for wall in examined.walls}


@pytest.mark.req("SVC-6")
def test_what_the_runtime_is_able_to_do_decides_what_is_offered(examined: IsolationResult) -> None:
    assert examined.transport == "socket"
    assert examined.levels == ("shared", "fresh", "single", "cold")


def on_host(**changed: Any) -> Callable[[Host], object]:
    return lambda config: config["HostConfig"].update(changed)


def security(*options: str) -> Callable[[Host], object]:
    return on_host(SecurityOpt=list(options))


def without_tmpfs(place: str) -> Callable[[Host], object]:
    return lambda config: config["HostConfig"]["Tmpfs"].pop(place)


def with_scratch(options: str) -> Callable[[Host], object]:
    def change(config: Host) -> None:
        uid = config["User"].split(":")[0]
        config["HostConfig"]["Tmpfs"]["/w"] = f"{options},mode=0700,uid={uid},gid={uid}"

    return change


def on_a_network(config: Host) -> None:
    config["NetworkDisabled"] = False
    config["HostConfig"]["NetworkMode"] = "bridge"


def as_root(config: Host) -> None:
    config["User"] = "0:0"


WEAKENED: list[tuple[str, Callable[[Host], object], set[str]]] = [
    # what is otherwise, how, and which walls do not hold then
    ("a capability", on_host(CapAdd=["CHOWN"]), {"capabilities"}),
    ("new privileges", lambda c: c["HostConfig"]["SecurityOpt"].remove("no-new-privileges"), {"no new privileges"}),
    (
        "no filter of system calls",
        security("no-new-privileges", "seccomp=unconfined"),
        {"system calls", "namespaces", "rare sockets"},
    ),
    ("Docker's own filter", security("no-new-privileges"), {"system calls", "rare sockets"}),
    ("a root that can be written to", on_host(ReadonlyRootfs=False), {"read-only root"}),
    ("a folder of the host", on_host(Binds=["/etc:/host:ro"]), {"foreign mounts"}),
    ("message queues", without_tmpfs("/dev/mqueue"), {"message queues", "writable places"}),
    ("shared memory", on_host(IpcMode="private"), {"shared memory", "writable places"}),
    ("nothing masked", on_host(MaskedPaths=[]), {"masked paths"}),
    ("nothing read-only", on_host(ReadonlyPaths=[]), {"kernel settings"}),
    ("another host name", lambda c: c.update(Hostname="worker-7"), {"host name"}),
    ("an environment", lambda c: c.update(Env=["TOKEN=x"]), {"box environment"}),
    ("another score", on_host(OomScoreAdj=0), {"order of ending"}),
    ("code from scratch space", with_scratch("size=1048576,nr_inodes=4096,exec"), {"scratch space"}),
    ("more scratch space", with_scratch("size=9999999,nr_inodes=4096,noexec"), {"scratch space"}),
    ("more files", with_scratch("size=9999999,nr_inodes=9999,noexec"), {"scratch space"}),
    ("more open files", on_host(Ulimits=[{"Name": "nofile", "Soft": 999, "Hard": 999}]), {"open files"}),
    ("core dumps", on_host(Ulimits=[{"Name": "core", "Soft": -1, "Hard": -1}]), {"core dumps"}),
    ("more processes", on_host(PidsLimit=999), {"processes"}),
    ("more memory", on_host(Memory=1 << 30, MemorySwap=1 << 30), {"memory"}),
    ("more processors", on_host(NanoCpus=0), {"processor"}),
    ("a network", on_a_network, {"network", "name server"}),
    ("root", as_root, {"own user"}),
]


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize(("change", "fallen"), [each[1:] for each in WEAKENED], ids=[each[0] for each in WEAKENED])
def test_a_wall_that_does_not_stand_is_seen(
    engine: Engine, image: str, change: Callable[[Host], object], fallen: set[str]
) -> None:
    assert look(engine, image, change, only=fallen) == fallen


@pytest.mark.req("SVC-10")
def test_every_wall_of_a_box_has_been_seen_fallen() -> None:
    assert set().union(*(fallen for _, _, fallen in WEAKENED)) == set(container.list_checks({}))


def as_open_as_can_be(config: Host) -> None:
    security("seccomp=unconfined")(config)
    on_host(CapAdd=["CHOWN"])(config)
    without_tmpfs("/dev/mqueue")(config)


@pytest.mark.req("SVC-10")
def test_where_no_runner_puts_up_walls_a_tool_would_see_none_of_them(engine: Engine, image: str) -> None:
    assert look(engine, image, as_open_as_can_be, "tool") == set(tool.LOOKS)


@pytest.mark.req("SVC-10")
def test_what_is_told_of_one_wall_is_not_told_of_another(engine: Engine, image: str) -> None:
    """The container's own walls stand in a box without a runner, and a tool would see them."""
    seen_fallen = look(engine, image, lambda _: None, "tool")

    assert set(tool.LOOKS) - seen_fallen >= {"tool: capabilities", "tool: no new privileges", "tool: rare sockets"}
    assert seen_fallen >= {"tool: second filter", "tool: file system", "tool: supervisor", "tool: order of ending"}


@pytest.mark.req("SVC-10")
def test_a_box_in_which_no_tool_runs_has_a_wall_that_does_not_hold(engine: Engine, image: str, tmp_path: Path) -> None:
    broken = DockerSandbox("toolhub-sandbox:no-such-tag", "test")

    found = isolation_check.check_isolation(engine, broken, image=image, runtime="", run_dir=tmp_path)

    (wall,) = found.missing
    assert (wall.name, wall.holds) == ("tool: a call", False)
    assert "make sandbox-image" in wall.detail
    assert found.levels == ()
    broken.close()


@pytest.mark.req("SVC-6", "SVC-10")
@pytest.mark.parametrize("level", ["shared", "fresh", "single", "cold"])
def test_at_every_level_a_tool_sees_the_same_walls(tmp_path: Path, level: str) -> None:
    tmp_path.chmod(0o755)
    sources = {path.stem: path.read_text() for path in isolation_check.PROBE.glob("*.py")}
    with DrivenBox(tmp_path) as driven:
        assert driven.load(sources | {"main": "from .tool import run"}, level=level)["ok"]
        found = driven.call().value

    assert {name: detail for name, (holds, detail) in found.items() if not holds} == {}
    assert set(found) == set(tool.LOOKS)


# Runtimes.


def examinations(engine: Engine, tmp_path: Path) -> IsolationChecks:
    image = os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()
    return IsolationChecks(
        engine,
        image=image,
        make_sandbox=lambda runtime: docker_sandbox(runtime=runtime),
        run_dir=tmp_path / "run",
        kept_in=tmp_path / "walls.json",
    )


@pytest.mark.req("SVC-6")
def test_a_runtime_that_the_engine_does_not_know_is_named_with_what_to_do(engine: Engine, tmp_path: Path) -> None:
    found = examinations(engine, tmp_path).of("no-such-runtime")

    assert (found.walls, found.levels) == ((), ())
    assert "no-such-runtime" in found.why
    assert "daemon.json" in found.why


@pytest.mark.req("SVC-6")
def test_a_call_is_told_too_that_its_runtime_is_not_there(tmp_path: Path) -> None:
    sandbox = docker_sandbox(runtime="no-such-runtime")

    outcome = run_source(sandbox, tmp_path, "def run(): return 1")

    assert outcome.status is RunStatus.START_FAILED
    assert "TOOLHUB_SANDBOX_RUNTIMES" in outcome.error_message
    sandbox.close()


@pytest.mark.req("SVC-10")
def test_what_was_seen_is_kept_and_looked_at_anew_when_asked(engine: Engine, tmp_path: Path) -> None:
    of = examinations(engine, tmp_path).of

    first, again = of("runc"), examinations(engine, tmp_path).of("runc")
    anew = of("runc", anew=True)

    assert first == again
    assert first.holding > 30
    assert anew.at > first.at
    assert examinations(engine, tmp_path).of("runc") == anew


@pytest.mark.req("SVC-10")
def test_doctor_says_of_each_wall_and_each_runtime_how_it_is(engine: Engine, tmp_path: Path) -> None:
    names = {"default": "runc", "untrusted": "no-such-runtime"}

    lines = list(describe_runtimes(examinations(engine, tmp_path), names, every=True))

    assert len([line for line in lines if (line.mark, line.about) == ("ok", "wall")]) >= 35
    assert [line.mark for line in lines if line.about == "runtime"] == ["ok", "WRONG"]
    assert "not verified on this host" in next(line.said for line in lines if line.mark == "WRONG")
    assert "runc" in lines[-1].said


@pytest.mark.req("SVC-6", "TOOLS-17")
def test_untrusted_code_gets_the_runtime_set_aside_when_every_wall_holds(engine: Engine, tmp_path: Path) -> None:
    runtimes = Runtimes({"untrusted": "runc"}, examinations(engine, tmp_path).of)

    assert runtimes.choose(Profile(untrusted=True)) == "runc"
    assert runtimes.choose(Profile()) == ""


@pytest.mark.req("TOOLS-17")
def test_a_call_that_nobody_vouches_for_runs_behind_walls_or_not_at_all(engine: Engine, tmp_path: Path) -> None:
    call = call_of(package_of(tmp_path, main="def run(): return 1"))
    outcomes = []
    for names in ({"untrusted": "runc"}, {"untrusted": "no-such-runtime"}, {}):
        sandbox = docker_sandbox(runtimes=Runtimes(names, examinations(engine, tmp_path).of))
        outcomes.append(sandbox.run(Profile(untrusted=True), call))
        sandbox.close()

    runs, unknown, nobodys = outcomes
    assert (runs.status, runs.value, runs.level) == (RunStatus.OK, 1, "single")
    assert unknown.status is nobodys.status is RunStatus.START_FAILED
    assert "no-such-runtime" in unknown.error_message
    assert "No runtime is set aside" in nobodys.error_message


@pytest.mark.req("TOOLS-17")
def test_untrusted_code_is_refused_when_the_runtime_set_aside_is_not_there(engine: Engine, tmp_path: Path) -> None:
    runtimes = Runtimes({"default": "runc", "untrusted": "runsc-of-tomorrow"}, examinations(engine, tmp_path).of)

    with pytest.raises(SandboxUnavailable, match=r"runsc-of-tomorrow.*daemon\.json"):
        runtimes.choose(Profile(untrusted=True))
    assert runtimes.choose(Profile()) == "runc"
