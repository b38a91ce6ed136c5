"""Kept providers: connected providers with their connections, each kept while its row says the same.

One that was replaced is closed when the last call that began with it has ended.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from llm.provider_factory import ProviderFactory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from llm.provider_factory import Provider, ProviderConfig, ProviderKind

MAX_PROVIDERS = 1024


@dataclass(slots=True, eq=False)
class KeptProvider:
    """``uses``: how many calls began with it and have not ended."""

    config: ProviderConfig
    factory: ProviderFactory
    provider: Provider
    uses: int = 0


class ProviderShelf:
    """All of a process, by tenant and name."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[UUID, str], KeptProvider] = OrderedDict()
        self._replaced: list[KeptProvider] = []
        self._lock = Lock()

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._replaced.clear()

    def take(
        self, tenant_id: UUID, name: str, config: ProviderConfig, kinds: Mapping[str, ProviderKind]
    ) -> KeptProvider:
        """The one that is kept, or a new one where its settings or its key have changed. Whoever takes it gives it back."""
        with self._lock:
            kept = self._kept.get((tenant_id, name))
            if kept is not None and kept.config == config:
                kept.uses += 1
                return kept
        factory = ProviderFactory(kinds)
        made = KeptProvider(config, factory, factory.register(name, config), uses=1)
        with self._lock:
            if (former := self._kept.pop((tenant_id, name), None)) is not None:
                self._replaced.append(former)
            self._kept[tenant_id, name] = made
            while len(self._kept) > MAX_PROVIDERS:
                self._replaced.append(self._kept.popitem(last=False)[1])
        return made

    def put_back(self, kept: KeptProvider) -> None:
        """It is not used after all, or not any more."""
        with self._lock:
            kept.uses -= 1

    async def give_back(self, kept: KeptProvider) -> None:
        """A call has ended. Whatever was replaced and is not used any more is closed, on the event loop that used it."""
        self.put_back(kept)
        with self._lock:
            idle = [each for each in self._replaced if not each.uses]
            self._replaced = [each for each in self._replaced if each.uses]
        for each in idle:
            provider: Any = each.provider
            if hasattr(provider, "aclose"):
                await provider.aclose()


shelf = ProviderShelf()
