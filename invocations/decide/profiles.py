"""Profiles: a run's Grant ∩ Manifest ∩ Policy, and the limits of its box.

Documents of grants, policies and installations are met once a process for each combination; equal documents have equal
profiles, and equal hashes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from access.policies.clauses import LEVELS
from invocations.run.time_limits import find_limiters
from invocations.sandbox.base import Limits, Profile
from kernel.canonical import canonicalize
from unitools.capabilities import TOP, Capabilities, build_allow_list_bound, effective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from access.policies.verdict import Verdict

LEAST_TMP = 4096  # a tmpfs of size 0 would be one without a limit
PROCESSES = 64  # and threads
# A browser is a dozen processes with many threads, and keeps its own files in the scratch space.
BROWSER_LEAST_TMP, BROWSER_PROCESSES = 64 * 1024 * 1024, 256


def compute_cpu_seconds(wall_ms: int) -> int:
    """A run may compute all the time that it has, and a second more, so that the wall clock ends it first."""
    return max(1, wall_ms // 1000 + 1)


def build_limits(reach: Capabilities, idle_ms: int = 0) -> Limits:
    ceilings = reach.ceilings
    wall_ms = ceilings["timeout_ms"]
    return Limits(
        wall_ms=wall_ms,
        idle_ms=idle_ms,
        cpu_s=min(compute_cpu_seconds(wall_ms), max(1, ceilings.get("cpu_ms", wall_ms + 2000) // 1000)),
        memory_bytes=ceilings["memory_bytes"],
        processes=BROWSER_PROCESSES if reach.browser else PROCESSES,
        tmp_bytes=max(BROWSER_LEAST_TMP if reach.browser else LEAST_TMP, reach.tmp),
        result_bytes=ceilings["max_bytes_out"],
        result_depth=ceilings["depth"],
        files=ceilings.get("files", 0),
        artifacts=(most := ceilings.get("artifacts", 0)),
        artifact_bytes=ceilings.get("artifact_bytes", 0) if most else 0,
    )


KEPT_FILES = Capabilities.from_json(
    {"fs": [{"path": "/data", "actions": ["read", "list", "write", "create", "delete"]}]}
).fs


def give_kept_files(profile: Profile, amounts: tuple[int, int] | None, policy: Capabilities | None = None) -> Profile:
    """With the files that the tool keeps; nobody has to grant them, since they are of no other tool, but ``policy`` bounds them.
    ``amounts``: files, bytes.
    """
    if amounts is None:
        return profile
    most, most_bytes = amounts
    bound = TOP if policy is None else policy
    limits = replace(profile.limits, files=min(most, bound.ceilings.get("files", most)), file_bytes=most_bytes)
    return replace(profile, capabilities=profile.capabilities.replaced(fs=KEPT_FILES.meet(bound.fs)), limits=limits)


def choose_isolation(verdict: Verdict, asked: str) -> str:
    """The strongest of what the hub is set to, what policy gives and what the manifest asks for."""
    return max((settings.TOOLHUB_SANDBOX_LEVEL, verdict.isolation, asked or LEVELS[0]), key=LEVELS.index)


@lru_cache(maxsize=4096)
def build_run_profile(
    reach: Capabilities,
    isolation: str,
    untrusted: bool = False,
    idle_ms: int = 0,
    keeps: tuple[int, int] | None = None,
    policy: Capabilities | None = None,
) -> Profile:
    limits = build_limits(reach, idle_ms)
    profile = Profile(limits=limits, capabilities=reach, isolation=isolation, untrusted=untrusted)
    return give_kept_files(profile, keeps, policy)


@lru_cache(maxsize=4096)
def _bound(document: bytes) -> Capabilities:
    return Capabilities.from_json(json.loads(document))


def parse_bound(document: dict[str, Any] | None) -> Capabilities | None:
    """The bounds of a grant; the same document is read once a process."""
    return None if document is None else _bound(canonicalize(document))


@lru_cache(maxsize=4096)
def _allow_lists(hosts: tuple[str, ...] | None, paths: tuple[str, ...] | None) -> Capabilities | None:
    return build_allow_list_bound(hosts, paths)


def build_installation_bound(hosts: Sequence[str] | None, paths: Sequence[str] | None) -> Capabilities | None:
    return _allow_lists(None if hosts is None else tuple(hosts), None if paths is None else tuple(paths))


@lru_cache(maxsize=4096)
def _capped(reach: Capabilities, limits: tuple[tuple[str, int], ...]) -> Capabilities:
    return reach & TOP.replaced(ceilings=dict(limits))


def build_policy_bound(verdict: Verdict) -> Capabilities | None:
    """What the ceilings of all layers leave; None when no rule speaks of any."""
    reach = verdict.capabilities
    if not verdict.limits:
        return reach
    return _capped(TOP if reach is None else reach, tuple(sorted(verdict.limits.items())))


@dataclass(frozen=True, slots=True)
class ResolvedProfile:
    """What one call may reach, its profile with the hash, and who took away the rest."""

    capabilities: Capabilities
    profile: Profile
    profile_hash: str
    explanation: list[dict[str, str]]
    limiters: dict[str, str]  # by limit, who lowered it


@lru_cache(maxsize=4096)
def _digest(profile: Profile) -> str:
    return profile.digest()


def resolve_profile(
    asks: Capabilities,
    verdict: Verdict,
    *,
    grant: dict[str, Any] | None,
    hosts: Sequence[str] | None,
    paths: Sequence[str] | None,
    dry_run: bool,
    isolation: str = "",
    idle_ms: int = 0,
    keeps: tuple[int, int] | None = None,
) -> ResolvedProfile:
    """``grant``: the bounds of the grant as its document has them; None bounds nothing. ``isolation``: the manifest's. ``keeps``: how
    many files of how many bytes the tool keeps.
    """
    policy = build_policy_bound(verdict)
    met, explanation = effective(
        asks,
        grant=parse_bound(grant),
        policy=policy,
        installation=build_installation_bound(hosts, paths),
        dry_run=dry_run,
    )
    level, bound = choose_isolation(verdict, isolation), policy if keeps else None
    profile = build_run_profile(met, level, verdict.untrusted, idle_ms, keeps, bound)
    return ResolvedProfile(
        met, profile, _digest(profile), explanation, find_limiters(explanation, verdict.restrictions.limiters)
    )
