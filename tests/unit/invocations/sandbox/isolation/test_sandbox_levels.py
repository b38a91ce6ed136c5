from __future__ import annotations

from dataclasses import replace

import pytest

from access.policies import clauses
from invocations.sandbox.base import BoxKey, Profile, SandboxCall
from invocations.sandbox.isolation.levels import LEVELS, choose_level

CALL = SandboxCall("inv-1", b"", "tool.main", "run", b"{}", {}, key=BoxKey("tenant", "code"))


def level_of(
    isolation: str, call: SandboxCall = CALL, *, pooled: bool = True, namespaces: bool = True, untrusted: bool = False
) -> str:
    profile = Profile(isolation=isolation, untrusted=untrusted)
    return choose_level(profile, call, pooled=pooled, namespaces=namespaces)


def test_levels_are_those_of_policies() -> None:
    assert LEVELS == clauses.LEVELS


@pytest.mark.parametrize("isolation", LEVELS)
def test_a_call_has_the_level_that_its_profile_asks_for(isolation: str) -> None:
    assert level_of(isolation) == isolation


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("isolation", LEVELS)
def test_whatever_is_in_the_way_makes_it_stronger_and_never_weaker(isolation: str) -> None:
    circumstances = [
        level_of(isolation, replace(CALL, key=None)),
        level_of(isolation, replace(CALL, program=("/usr/bin/node",))),
        level_of(isolation, untrusted=True),
    ]

    assert circumstances == [max(isolation, "single", key=LEVELS.index)] * 3
    assert level_of(isolation, pooled=False) == "cold"


def test_only_what_needs_namespaces_is_made_stronger_where_there_are_none() -> None:
    assert [level_of(level, namespaces=False) for level in LEVELS] == ["shared", "single", "single", "cold"]
