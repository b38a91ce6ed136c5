"""Profile limits: which limits does a box get from what a call may reach?"""

from __future__ import annotations

from typing import Any

import pytest

from invocations.decide.profiles import BROWSER_LEAST_TMP, LEAST_TMP, build_limits
from invocations.sandbox.base import Limits
from tests.support.manifests import manifest
from unitools.capabilities import Capabilities
from unitools.manifest import Manifest

MIB = 1024 * 1024


def limits_for(**changes: Any) -> Limits:
    return build_limits(Capabilities.of_manifest(Manifest(manifest(**changes))))


def test_a_tool_that_asks_for_nothing_has_the_usual_box() -> None:
    limits = limits_for()

    assert (limits.memory_bytes, limits.processes, limits.tmp_bytes) == (256 * MIB, Limits().processes, LEAST_TMP)


@pytest.mark.req("TOOLS-16")
def test_a_browser_has_numbers_of_its_own() -> None:
    limits = limits_for(capabilities={"browser": True})

    assert (limits.memory_bytes, limits.processes, limits.tmp_bytes) == (1024 * MIB, 256, BROWSER_LEAST_TMP)


def test_what_a_manifest_says_goes_before_the_browsers_numbers() -> None:
    limits = limits_for(capabilities={"browser": True, "tmp": 128 * MIB}, limits={"memory_bytes": 512 * MIB})

    assert (limits.memory_bytes, limits.tmp_bytes) == (512 * MIB, 128 * MIB)
