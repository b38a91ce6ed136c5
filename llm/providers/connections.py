"""Connections: how a provider over HTTP is reached, as its configuration says, whatever kind it is of.

Options: ``networks``, private ones that may be asked; ``proxy``; and what only a program can give, ``limits`` and ``check_address``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm.providers.http_client import AllowedAddresses, HttpClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llm.provider_factory import ProviderConfig


def build_http_client(cfg: ProviderConfig, address: str = "", headers: Mapping[str, str] | None = None) -> HttpClient:
    """The connections of one provider. ``address``: where the configuration has none. Raises SchemaInvalid for one that is none."""
    options = cfg.options
    return HttpClient(
        cfg.base_url or address,
        headers=headers,
        limits=options.get("limits"),
        check_address=options.get("check_address") or AllowedAddresses(tuple(options.get("networks", ()))),
        proxy=options.get("proxy", ""),
    )
