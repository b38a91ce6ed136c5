"""Isolation check: which walls really stand around a box on this host.

Every wall is tried and not asked about: a small program looks at a container from its first process, before any wall of the
runner, and again as a tool in a real box (``invocations/sandbox/isolation/probe``). What an engine was asked for and did not do is
found so, and what stands only because two walls stand behind each other is not.
"""

from __future__ import annotations

import base64
import json
import random
import re
import secrets
import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, SandboxCall
from invocations.sandbox.boxes.attach_stream import ChannelLost
from invocations.sandbox.engine import ContainerNameTaken, EngineError
from invocations.sandbox.isolation.container import build_container_config
from invocations.sandbox.isolation.echo_socket import EchoSocket
from unitools.packages import build_zip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.engine import Engine

PROBE = Path(__file__).with_name("probe")
# Little of everything, so that the looks at limits are cheap.
LIMITS = Limits(memory_bytes=48 * 1024 * 1024, processes=24, tmp_bytes=1024 * 1024, wall_ms=20_000)
A_CALL, OWN_WORLD = "tool: a call", "user namespaces"
# What may be missing without making a box unfit for code that nobody vouches for, and why.
SPARE = {
    "host name": "it gives nothing away that matters",
    "processor": "it keeps one box from slowing the others, and cannot be told on every machine",
    OWN_WORLD: "without them a level of isolation is not there, and a stronger one is",
    "tool: file system": "kernels before 5.13 have no Landlock; the container shows a tool nothing of the host",
}
_UIDS = range(200_000, 300_000)
_PYTHON = "/usr/local/bin/sandbox-python"
# The probe comes as an argument and is put where nothing has to be mounted for it.
_BEGIN = """
import base64, json, os, sys
fd = os.memfd_create("probe")
os.write(fd, base64.b64decode(sys.argv[1]))
sys.path.insert(0, f"/proc/self/fd/{fd}")
from probe import main
main.main(json.loads(sys.argv[2]))
"""
_ANSWER_S = 30.0
_GONE_S = 5.0
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Wall:
    """``holds`` is None when it could not be told. ``detail`` says what was seen."""

    name: str
    holds: bool | None
    detail: str
    needed_for_untrusted: bool = True


@dataclass(frozen=True, slots=True)
class IsolationResult:
    """What was seen of one runtime on this host.

    ``why`` says why nothing could be looked at; then there are no walls. ``transport``: ``socket`` when a box reaches a
    unix socket of this host, else ``attach``. ``levels`` are those that can be given, weakest first.
    """

    runtime: str
    walls: tuple[Wall, ...] = ()
    transport: str = ""
    levels: tuple[str, ...] = ()
    label: str = ""  # what AppArmor or SELinux calls a process in the box
    why: str = ""
    at: float = 0.0  # when, in seconds since the epoch

    @property
    def holding(self) -> int:
        return sum(wall.holds is True for wall in self.walls)

    @property
    def others(self) -> list[Wall]:
        """Those that do not hold, or of which it cannot be told."""
        return [wall for wall in self.walls if wall.holds is not True]

    @property
    def missing(self) -> list[Wall]:
        """Those of them that untrusted code needs; ``tool: a call`` says that nothing runs at all."""
        return [wall for wall in self.others if wall.needed_for_untrusted]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> IsolationResult:
        return cls(**data | {"walls": tuple(Wall(**wall) for wall in data["walls"]), "levels": tuple(data["levels"])})


@lru_cache(maxsize=1)
def pack_probe() -> bytes:
    return build_zip(PROBE)


def build_container_request(
    image: str, runtime: str, *, fresh: bool = False, folder: Path | None = None, uid: int | None = None
) -> dict[str, Any]:
    """The request for a box as every call gets it, with the probe in place of the runner."""
    if uid is None:
        uid = random.choice(_UIDS)  # noqa: S311 - not a secret
    config = build_container_config(
        image=image,
        uid=uid,
        limits=LIMITS,
        package_bytes=0,
        labels={"toolhub.probe": "walls"},
        runtime=runtime,
        fresh=fresh,
        folder=folder,
    )
    config["Entrypoint"] = [_PYTHON, "-I", "-S", "-B", "-c", _BEGIN]
    return config


def build_probe_request(config: dict[str, Any], looks: str = "box", *, only: Iterable[str] = ()) -> dict[str, Any]:
    """What must be seen in the box of this request. ``looks``: box, tool, or empty to look at no walls; ``only`` at these."""
    host = config["HostConfig"]
    scratch = dict(re.findall(r"(size|nr_inodes)=(\d+)", host["Tmpfs"]["/w"]))
    limits = {limit["Name"]: limit["Hard"] for limit in host["Ulimits"]}
    return {
        "looks": looks,
        "only": sorted(only),
        "nonce": secrets.token_hex(16),
        "patience_s": 60,
        "uid": int(config["User"].split(":")[0]),
        "host_name": config["Hostname"],
        "writable": ["/w", "/p"],
        "masked": host["MaskedPaths"],
        "read_only": host["ReadonlyPaths"],
        "oom_score": host["OomScoreAdj"],
        "tmp_bytes": int(scratch["size"]),
        "files": int(scratch["nr_inodes"]),
        "open_files": limits["nofile"],
        "processes": host["PidsLimit"],
        "processors": host["NanoCpus"] / 1e9,
        "memory": host["MemorySwap"],
    }


def run_probe(engine: Engine, config: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """What the probe says from the box of this request, which is gone afterwards. ``EngineError`` when there is none."""
    config["Cmd"] = [base64.b64encode(pack_probe()).decode(), json.dumps(asked)]
    name = f"toolhub-box-{asked['uid']}"
    box = engine.create(config, name)
    try:
        stream = engine.attach(box)
        try:
            engine.start(box)
            stream.allow(_ANSWER_S)
            said: dict[str, Any] = json.loads(stream.read(int(stream.read(8))))
        except ChannelLost as error:
            raise EngineError(f"The probe's box did not answer. {error}") from error
        finally:
            stream.close()
        said["name_taken"] = _is_taken(engine, config, name)
        said["killed"] = _killed(engine, box)
    finally:
        engine.remove(box)
    return said


def _is_taken(engine: Engine, config: dict[str, Any], name: str) -> bool:
    """Two live boxes never have one user, because the engine refuses a second box of the name."""
    try:
        engine.remove(engine.create(config, name))
    except ContainerNameTaken:
        return True
    return False


def _killed(engine: Engine, box: str) -> bool:
    engine.signal(box, "SIGKILL")
    until = time.monotonic() + _GONE_S
    while engine.exists(box):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _run_probe(engine: Engine, image: str, runtime: str, **more: Any) -> dict[str, Any]:
    looks = more.pop("looks")
    with EchoSocket(more.pop("run_dir")) as echo:
        for _ in range(_TRIES):
            config = build_container_request(image, runtime, folder=echo.folder, **more)
            try:
                asked = build_probe_request(config, looks) | {"nonce": echo.nonce}
                return run_probe(engine, config, asked)
            except ContainerNameTaken:
                continue
    raise EngineError("No free user for another box was found. Are containers left over on the engine?")


def check_isolation(engine: Engine, sandbox: Sandbox, *, image: str, runtime: str, run_dir: Path) -> IsolationResult:
    """Look at everything. ``sandbox`` runs tools in boxes of the same image and runtime."""
    seen = IsolationResult(runtime)
    try:
        outer = _run_probe(engine, image, runtime, looks="box", run_dir=run_dir)
        freer = _run_probe(engine, image, runtime, looks="", run_dir=run_dir, fresh=True)
    except EngineError as error:
        return replace(seen, why=str(error))
    able = freer["abilities"]
    levels = _levels(outer["killed"] and freer["killed"], able)
    walls = {name: Wall(name, *found) for name, found in outer["walls"].items()}
    walls["own user"] = _own_user(walls["own user"], taken=outer["name_taken"])
    by_level: dict[str, list[Wall]] = {
        level: _seen_by_a_tool(sandbox, level) for level in ("fresh", "cold") if level in levels
    }
    if _call_of(by_level, "cold").holds is not True:
        levels = ()
    elif "fresh" in levels and (call := _call_of(by_level, "fresh")).holds is not True:
        levels = tuple(level for level in levels if level != "fresh")
        able["no_namespaces"] = call.detail
        del by_level["fresh"]
    walls |= _worst(by_level)
    world = able["no_namespaces"] or "a call can have a world of its own"
    walls[OWN_WORLD] = Wall(OWN_WORLD, not able["no_namespaces"], world)
    return replace(
        seen,
        walls=tuple(replace(wall, needed_for_untrusted=wall.name not in SPARE) for wall in walls.values()),
        transport="socket" if able["unix_socket"] else "attach",
        levels=levels,
        label=able["label"],
    )


def _levels(killed: bool, able: dict[str, Any]) -> tuple[str, ...]:
    """A box that cannot be ended is of no use; without a count what a call leaves behind would not be seen."""
    if not killed:
        return ()
    return tuple(_offered(able))


def _offered(able: dict[str, Any]) -> Iterator[str]:
    if able["counts_processes"]:
        yield "shared"
        if not able["no_namespaces"]:
            yield "fresh"
    yield from ("single", "cold")


def _own_user(wall: Wall, *, taken: bool) -> Wall:
    if taken:
        return replace(wall, detail=f"{wall.detail}, and no other box gets it")
    return replace(wall, holds=False, detail="the engine lets two boxes have one name, and so one user")


def _call_of(by_level: dict[str, list[Wall]], level: str) -> Wall:
    return by_level[level][0] if level in by_level else Wall(A_CALL, False, "a box cannot be ended")


def _worst(by_level: dict[str, list[Wall]]) -> dict[str, Wall]:
    """One that falls at any level does not hold."""
    walls: dict[str, Wall] = {}
    for level, found in by_level.items():
        for wall in found:
            known = walls.get(wall.name)
            if known is None or (known.holds is True and wall.holds is not True):
                walls[wall.name] = wall if wall.holds else replace(wall, detail=f"{wall.detail} (level {level})")
    return walls


def _seen_by_a_tool(sandbox: Sandbox, level: str) -> list[Wall]:
    """That it is called at all is the first."""
    call = SandboxCall(
        name=f"walls-{secrets.token_hex(8)}",
        package=pack_probe(),
        module="probe.tool",
        entry="run",
        arguments=b"{}",
        context={"call_id": "walls", "tool_id": "toolhub.walls.probe", "started_at": "1970-01-01T00:00:00+00:00"},
        key=BoxKey(tenant="toolhub", code="walls"),
    )
    outcome = sandbox.run(Profile(LIMITS, isolation=level), call)
    if outcome.status is not RunStatus.OK:
        return [Wall(A_CALL, False, outcome.error_message or f"it ended as {outcome.status}")]
    if level == "fresh" and outcome.level not in ("", level):
        return [Wall(A_CALL, False, f"calls are given the level {outcome.level}")]
    return [Wall(A_CALL, True, "a tool ran to its end"), *(Wall(name, *found) for name, found in outcome.value.items())]
