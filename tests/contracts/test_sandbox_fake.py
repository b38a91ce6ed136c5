from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.fake import FakeSandbox
from tests.contracts.sandbox_contract import SandboxContract

if TYPE_CHECKING:
    from collections.abc import Iterator


class TestFakeSandbox(SandboxContract):
    @pytest.fixture
    def sandbox(self) -> Iterator[FakeSandbox]:
        sandbox = FakeSandbox()
        yield sandbox
        sandbox.close()
