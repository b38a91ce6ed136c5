"""Attenuation: whether what is requested is no wider than a grant, and what of it is.

Attenuation only: the terms that come out reach no further than the grant that they were taken from, whatever was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from access.grants.matcher import missing_scopes
from kernel.canonical import canonicalize
from unitools.capabilities import Capabilities, explain
from unitools.expressions import TooEntangledError, find_tool_beyond, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from access.grants.matcher import Scope
    from unitools.expressions import Subject

Finding = dict[str, str]


class Terms(NamedTuple):
    """What a grant says of the calls that it lets through."""

    tools: str
    capabilities: dict[str, Any] | None = None
    scopes: Sequence[Scope] | None = None
    conditions: Sequence[dict[str, Any]] = ()


class RequestedTerms(NamedTuple):
    """Terms that can be read (access.grants.services.check_terms). None: as the grant has them. Conditions come on top of its own."""

    tools: str | None = None
    capabilities: dict[str, Any] | None = None
    scopes: Sequence[Scope] | None = None
    conditions: Sequence[dict[str, Any]] = ()


def attenuate_terms(whole: Terms, asked: RequestedTerms) -> Terms:
    """What is handed on, when nothing of it is wider."""
    own = set(map(canonicalize, whole.conditions))  # as JSON: to Python 1 is True
    return Terms(
        tools=whole.tools if asked.tools is None else asked.tools,
        capabilities=_bounds(whole.capabilities, asked.capabilities),
        scopes=whole.scopes if asked.scopes is None else list(asked.scopes),
        conditions=[*whole.conditions, *(each for each in asked.conditions if canonicalize(each) not in own)],
    )


def _bounds(whole: dict[str, Any] | None, asked: dict[str, Any] | None) -> dict[str, Any] | None:
    if asked is None or whole is None:
        return whole if asked is None else asked
    return _with_ceilings_of(Capabilities.from_json(whole), Capabilities.from_json(asked)).to_json()


def _with_ceilings_of(whole: Capabilities, asked: Capabilities) -> Capabilities:
    """A ceiling that nothing was said about stays as it is."""
    return asked.replaced(ceilings={**whole.ceilings, **asked.ceilings})


def find_widenings(whole: Terms, asked: RequestedTerms) -> list[Finding]:
    """What of the ask is wider than the grant, each with a place in the ask and a sentence; empty when nothing is."""
    return [*_wider_tools(whole, asked), *_wider_scopes(whole, asked), *_wider_capabilities(whole, asked)]


def _wider_tools(whole: Terms, asked: RequestedTerms) -> Iterator[Finding]:
    if asked.tools is None or asked.tools == whole.tools:
        return
    try:
        found = find_tool_beyond(parse(asked.tools), parse(whole.tools))
    except TooEntangledError as wrong:
        yield {"pointer": "/tools", "message": str(wrong)}
        return
    if found is not None:
        message = f"{asked.tools} also names {_named(found)}, which {whole.tools} does not."
        yield {"pointer": "/tools", "message": message}


def _named(tool: Subject) -> str:
    """Such a tool in words: ``other`` stands for any name that neither expression names."""
    marks = [
        *(f"tag:{tag}" for tag in sorted(tool.tags)),
        *(f"domain:{domain}" for domain in sorted(tool.domains)),
        f"effect:{tool.side_effect}",
        f"safety:{tool.safety_class}",
    ]
    return f"a tool such as {tool.id} ({', '.join(marks)})"


def _wider_scopes(whole: Terms, asked: RequestedTerms) -> Iterator[Finding]:
    for number, scope in enumerate(asked.scopes or ()):
        if missing_scopes(whole.scopes, [scope]):
            message = f"The grant does not hold {scope['action']} on {scope['resource']}."
            yield {"pointer": f"/scopes/{number}", "message": message}


def _wider_capabilities(whole: Terms, asked: RequestedTerms) -> Iterator[Finding]:
    if asked.capabilities is None or whole.capabilities is None:
        return
    bound = Capabilities.from_json(whole.capabilities)
    wanted = _with_ceilings_of(bound, Capabilities.from_json(asked.capabilities))
    if wanted <= bound:
        return
    for entry in explain(wanted, grant=bound):
        kept = f"only {entry['kept']}" if "kept" in entry else "nothing of it"
        message = f"The grant does not allow {entry['capability']}: {kept}."
        yield {"pointer": "/capabilities", "message": message}


def lasts_longer(expires_at: datetime | None, than: datetime | None) -> bool:
    """None: until it is revoked."""
    return than is not None and (expires_at is None or expires_at > than)
