"""Fixtures of attacks: where do the attacks take place?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.attacks.arena import Arena
from tests.attacks.levels import EVERY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=EVERY)
def arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    found = Arena(request.param)
    yield found
    found.close()
