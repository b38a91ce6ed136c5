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
    level, _, transport = request.param.partition(" over ")
    found = Arena(level, transport=transport)
    yield found
    found.close()
