"""The contract of sandboxes, kept by the real one at every level of isolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, Profile, RunStatus
from invocations.sandbox.isolation.levels import LEVELS
from invocations.sandbox.pool.slots import PoolCaps
from tests.contracts.sandbox_contract import SandboxContract
from tests.support.sandboxes import AtLevel, call_of, docker_sandbox, package_of, run_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[DockerSandbox]:
    """Its boxes are warm: the tests of all levels take from the same pool."""
    sandbox = docker_sandbox(caps=PoolCaps(ready=2))
    yield sandbox
    sandbox.close()


class DockerContract(SandboxContract):
    level = ""
    gives = frozenset({"fs", "proc", "browser"})

    @pytest.fixture
    def sandbox(self, shared_sandbox: DockerSandbox) -> AtLevel:
        return AtLevel(shared_sandbox, self.level)

    @pytest.fixture
    def own_sandbox(self) -> AtLevel:
        return AtLevel(docker_sandbox(), self.level)


class TestShared(DockerContract):
    level = "shared"


class TestFresh(DockerContract):
    level = "fresh"


@pytest.mark.long  # a box that nobody reuses, as a cold one, but for how it was begun
class TestSingle(DockerContract):
    level = "single"


class TestCold(DockerContract):
    level = "cold"


PROBE = """
import ctypes, os, resource
def run():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {
        "capabilities": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "no_new_privileges": status["NoNewPrivs"].strip(),
        "seccomp": status["Seccomp"].strip(),
        "filters": status["Seccomp_filters"].strip(),
        "uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(), "pid": os.getpid(),
        "hostname": os.uname().nodename,
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "cwd": os.getcwd(), "mode": os.stat("/w").st_mode & 0o777, "package": os.stat("/p").st_mode & 0o777,
    }
"""


@pytest.mark.parametrize("level", LEVELS)
def test_every_wall_is_up_as_the_kernel_tells_it(shared_sandbox: DockerSandbox, tmp_path: Path, level: str) -> None:
    seen = run_source(AtLevel(shared_sandbox, level), tmp_path, PROBE).value

    assert seen["capabilities"] == [0, 0, 0, 0, 0]
    assert seen["no_new_privileges"] == "1"
    assert seen["seccomp"] == "2"
    assert int(seen["filters"]) >= 2
    assert 200_000 <= seen["uid"] < 300_000
    assert seen["gid"] == seen["uid"]
    assert seen["groups"] in ([], [seen["gid"]], [65534])
    assert seen["hostname"] == "sandbox"
    assert seen["descriptors"] == 5
    assert seen["core"] == [0, 0]
    assert (seen["cwd"], seen["mode"], seen["package"]) == ("/w", 0o700, 0o555)


@pytest.mark.parametrize("level", LEVELS)
def test_without_scratch_space_nothing_can_be_written(
    shared_sandbox: DockerSandbox, tmp_path: Path, level: str
) -> None:
    sandbox = AtLevel(shared_sandbox, level)

    outcome = run_source(sandbox, tmp_path, "def run(): open('/w/x', 'w')", limits=Limits(tmp_bytes=0))

    assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "fs")


def test_the_largest_package_goes_through(shared_sandbox: DockerSandbox, tmp_path: Path) -> None:
    package = package_of(tmp_path, main="def run(): return len(open(__file__.replace('main', 'large')).read())",
                         large="#" * (15 * 1024 * 1024))  # fmt: skip

    outcome = shared_sandbox.run(Profile(Limits(memory_bytes=64 * 1024 * 1024)), call_of(package))

    assert outcome.value == 15 * 1024 * 1024, outcome
