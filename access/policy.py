"""What does policy allow, whatever was granted?

In this version one document from the settings applies to every tenant. It is read on each use, so a change counts with
the next request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from access.capabilities import Capabilities
from access.problems import PolicyDenied
from toolhub.kernel.canonical import digest


@dataclass(frozen=True, slots=True)
class Policy:
    """``limits``: ceilings for ``timeout_ms``, ``memory_bytes``, ``max_bytes_in``, ``max_bytes_out``."""

    version: str
    hash: str
    capabilities: Capabilities
    limits: dict[str, int]
    denied_tools: tuple[str, ...]


def current_policy() -> Policy:
    document: dict[str, Any] = settings.TOOLHUB_POLICY
    return Policy(
        version=document["version"],
        hash=digest(document),
        capabilities=Capabilities.from_json(document["capabilities"]),
        limits=document["limits"],
        denied_tools=tuple(document["denied_tools"]),
    )


def check_policy_allows(policy: Policy, *, tool_id: str) -> None:
    if tool_id in policy.denied_tools:
        raise PolicyDenied(
            f"The policy {policy.version} does not allow {tool_id}.",
            remedy="Ask an owner of the hub to take the tool off the policy's list of denied tools.",
            details={"policy": policy.version},
        )
