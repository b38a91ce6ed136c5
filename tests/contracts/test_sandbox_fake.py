from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Profile, RunStatus
from invocations.sandbox.fake import FakeSandbox
from tests.contracts.sandbox_contract import SandboxContract
from tests.support.sandboxes import call_of, package_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class TestFakeSandbox(SandboxContract):
    @pytest.fixture
    def sandbox(self) -> Iterator[FakeSandbox]:
        sandbox = FakeSandbox()
        yield sandbox
        sandbox.close()

    @pytest.fixture
    def own_sandbox(self, sandbox: FakeSandbox) -> FakeSandbox:
        return sandbox

    @pytest.mark.req("TOOLS-17")
    def test_it_has_no_walls_and_runs_nothing_untrusted(self, sandbox: FakeSandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main="def run(): return 1"))

        outcome = sandbox.run(Profile(untrusted=True), call)

        assert outcome.status is RunStatus.START_FAILED
        assert "no walls" in outcome.error_message
