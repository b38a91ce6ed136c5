"""Processes for trusted tools: do plain processes for trusted tools keep the contract of sandboxes, and is only what is vouched
for run in one?
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.direct_runs.pool import DirectSandbox
from invocations.direct_runs.selection import SelectingSandbox, needs_box
from invocations.sandbox.base import Limits, Profile, RunStatus, TenantFile
from invocations.sandbox.fake import FakeSandbox
from tests.contracts.sandbox_contract import SandboxContract
from tests.support.sandboxes import call_of, package_of
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.base import SandboxCall

ONE = "def run(): return 1"
SHARED = Profile(isolation="shared")


class TestDirectPool(SandboxContract):
    @pytest.fixture
    def sandbox(self) -> Iterator[DirectSandbox]:
        pool = DirectSandbox()
        yield pool
        pool.close()

    @pytest.fixture
    def own_sandbox(self, sandbox: DirectSandbox) -> DirectSandbox:
        return sandbox

    @pytest.mark.req("SVC-11")
    def test_a_call_finds_a_process_ready_that_nobody_used(self, sandbox: DirectSandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main="import os\ndef run(): return os.getpid()"))
        assert sandbox.waiting == 0  # a hub without trusted tools has none

        outcomes = [sandbox.run(Profile(), replace(call, name=f"run-{number}")) for number in range(4)]

        assert len({outcome.value for outcome in outcomes}) == 4
        assert {outcome.level for outcome in outcomes} == {"direct"}
        assert sandbox.waiting == 2

    @pytest.mark.req("SVC-11")
    def test_a_process_that_ended_while_it_waited_is_passed_over(self, sandbox: DirectSandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main=ONE))
        sandbox.run(Profile(), call)
        assert sandbox.waiting == 2
        for process in sandbox._ready:
            process.kill_all()
            process.process.wait()

        assert sandbox.run(Profile(), call).value == 1

    @pytest.mark.req("SVC-11")
    def test_other_code_under_the_same_name_is_the_other_code(self, sandbox: DirectSandbox, tmp_path: Path) -> None:
        found = []
        for number in (1, 2):
            place = tmp_path / str(number)
            place.mkdir()
            found.append(sandbox.run(Profile(), call_of(package_of(place, main=f"def run(): return {number}"))).value)

        assert found == [1, 2]

    @pytest.mark.req("SVC-11")
    def test_neither_the_hub_nor_its_packages_are_beside_the_tool(self, sandbox: DirectSandbox, tmp_path: Path) -> None:
        source = (
            "import importlib.util, sys\n"
            "def run():\n"
            "    found = [n for n in ('django', 'toolhub', 'invocations', 'httpx') if importlib.util.find_spec(n)]\n"
            "    return [found, [each for each in sys.path if 'site-packages' in each]]"
        )

        assert sandbox.run(Profile(), call_of(package_of(tmp_path, main=source))).value == [[], []]

    @pytest.mark.req("SVC-11")
    def test_a_tool_cannot_leave_a_process_behind_that_outlives_its_call(
        self, sandbox: DirectSandbox, tmp_path: Path
    ) -> None:
        source = "import os\ndef run():\n    if os.fork() == 0:\n        os.setsid()\n        os.pause()"

        outcome = sandbox.run(Profile(), call_of(package_of(tmp_path, main=source)))

        assert (outcome.status, outcome.blocked) == (RunStatus.CAPABILITY_BLOCKED, "system")

    @pytest.mark.req("SVC-11")
    def test_what_is_closed_leaves_nothing_behind(self, tmp_path: Path) -> None:
        pool = DirectSandbox()
        pool.run(Profile(), call_of(package_of(tmp_path, main=ONE)))
        assert pool.waiting == 2
        waiting, harness = [*pool._ready], pool._harness

        pool.close()

        assert harness is not None
        assert not harness.exists()
        assert not [each for each in waiting if each.place.exists() or each.process.poll() is None]


def trusted(call: SandboxCall, **more: Any) -> SandboxCall:
    return replace(call, trusted=True, **more)


@pytest.mark.req("SVC-11")
def test_only_what_is_vouched_for_and_needs_nothing_runs_directly(tmp_path: Path) -> None:
    call = call_of(package_of(tmp_path, main=ONE))
    net = Profile(isolation="shared", capabilities=Capabilities.from_json({"net": [{"host": "a.example.org"}]}))
    secret = Profile(isolation="shared", capabilities=Capabilities.from_json({"secrets": ["shop.token"]}))

    assert not needs_box(SHARED, trusted(call), usual="fresh")
    assert not needs_box(replace(SHARED, isolation="fresh"), trusted(call), usual="fresh")
    for profile, asked in (
        (SHARED, call),
        (replace(SHARED, isolation="single"), trusted(call)),
        (replace(SHARED, untrusted=True), trusted(call)),
        (replace(SHARED, limits=Limits(files=1)), trusted(call)),
        (net, trusted(call)),
        (secret, trusted(call)),
        (SHARED, trusted(call, secrets={"shop.token": "x"})),
        (SHARED, trusted(call, files=(TenantFile("/data/a", b""),))),
        (SHARED, trusted(call, dependencies=tmp_path)),
        (SHARED, trusted(call, program=("node", "a.js"))),
        (SHARED, trusted(call, image="node")),
    ):
        assert needs_box(profile, asked, usual="fresh")


@pytest.mark.req("SVC-11")
def test_both_are_one_sandbox(tmp_path: Path) -> None:
    sandbox = SelectingSandbox(FakeSandbox(), DirectSandbox(), usual="fresh")
    call = call_of(package_of(tmp_path, main=f"import os\ndef run(): return os.getppid() == {os.getpid()}"))

    found = [sandbox.run(SHARED, each) for each in (call, trusted(call))]

    assert [(each.status, each.image, each.value) for each in found] == [
        (RunStatus.OK, "fake", True),
        (RunStatus.OK, "direct", True),
    ]
    sandbox.kill("nobody")
    assert not sandbox.closing
    assert sandbox.snapshot() is None
    sandbox.close()
    assert sandbox.run(SHARED, trusted(call)).status is RunStatus.CANCELLED
