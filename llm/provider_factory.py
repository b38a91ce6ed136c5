"""Provider factory: which providers there are by name, and their models.

A kind of provider is what knows how to talk to one: this program brings some, and an installed distribution adds its own with an entry
point in the group ``llm.providers``. A provider is a kind with an address and a key, under a name. Providers and aliases change while
requests run: a request keeps the model that it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol

from kernel.problems import NotFound, SchemaInvalid
from llm.providers.kinds import MODULES, load_kind
from llm.requests import ModelId, is_alias, is_provider_name
from unitools.checks.findings import format_pointer

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from llm.interfaces import ChatModel, EmbedModel, RerankModel

GROUP = "llm.providers"


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """How one provider is reached. ``options`` are for its kind to read."""

    kind: str
    base_url: str = ""
    key: str = field(default="", repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """One connected provider. Each method raises NotFound for a name that it has no such model of."""

    def get_chat_model(self, name: str) -> ChatModel: ...

    def get_embed_model(self, name: str) -> EmbedModel: ...

    def get_rerank_model(self, name: str) -> RerankModel: ...


ProviderKind = Callable[[ProviderConfig], Provider]


@cache
def list_foreign_kinds() -> frozenset[str]:
    """Those of other distributions. To look through all that is installed takes longer than the rest of a preflight."""
    return frozenset(entry_points(group=GROUP).names)


def _load_kind(entry: EntryPoint) -> ProviderKind:
    try:
        kind: ProviderKind = entry.load()
    except Exception as error:
        message = f"The kind of provider {entry.name} cannot be loaded ({type(error).__name__})."
        raise SchemaInvalid.at("/kind", message) from error
    return kind


class ProviderFactory:
    """The providers of one program or tenant. ``kinds`` come before those of this program, and these before entry points."""

    def __init__(self, kinds: Mapping[str, ProviderKind] | None = None) -> None:
        self._kinds = dict(kinds or {})
        self._providers: dict[str, Provider] = {}
        self._aliases: dict[str, ModelId] = {}

    def register(self, name: str, cfg: ProviderConfig) -> Provider:
        """Connect a provider under a name, in the place of one that had it.

        Raises:
            SchemaInvalid: there is no such kind, or the name is none that a model id can begin with.
        """
        if not is_provider_name(name):
            message = (
                "A provider's name has lower-case letters, digits, hyphens and underscores, and begins with a letter."
            )
            raise SchemaInvalid.at("/name", message)
        provider = self._find_kind(cfg.kind)(cfg)
        self._providers[name] = provider
        return provider

    def _find_kind(self, kind: str) -> ProviderKind:
        """Those of other distributions are imported when they are asked for, so a broken one harms nobody else."""
        if kind in self._kinds:
            return self._kinds[kind]
        if kind in MODULES:
            return load_kind(kind)
        found = entry_points(group=GROUP)
        for each in found.select(name=kind):
            return _load_kind(each)
        known = ", ".join(sorted({*self._kinds, *MODULES, *found.names}))
        raise SchemaInvalid.at("/kind", f"There is no such kind of provider here. There are: {known}.")

    def set_aliases(self, aliases: Mapping[str, str]) -> None:
        """Name models for callers, in the place of all aliases before: alias to ``provider:model``. Raises SchemaInvalid."""
        fresh: dict[str, ModelId] = {}
        for alias, target in aliases.items():
            if not is_alias(alias):
                message = "An alias has lower-case letters, digits, dots, hyphens and underscores."
                raise SchemaInvalid.at(format_pointer(("aliases", alias)), message)
            try:
                fresh[alias] = ModelId.parse(target)
            except ValueError as error:
                raise SchemaInvalid.at(format_pointer(("aliases", alias)), str(error)) from None
        self._aliases = fresh

    def get_chat_model(self, name: str) -> ChatModel:
        """The model of an alias or of an id ``provider:model``. Raises NotFound."""
        provider, id = self._resolve(name)
        return provider.get_chat_model(id.model)

    def get_embed_model(self, name: str) -> EmbedModel:
        """As :meth:`get_chat_model`."""
        provider, id = self._resolve(name)
        return provider.get_embed_model(id.model)

    def get_rerank_model(self, name: str) -> RerankModel:
        """As :meth:`get_chat_model`."""
        provider, id = self._resolve(name)
        return provider.get_rerank_model(id.model)

    def _resolve(self, name: str) -> tuple[Provider, ModelId]:
        if is_alias(name) and name in self._aliases:
            id = self._aliases[name]
        else:
            try:
                id = ModelId.parse(name)
            except ValueError:
                raise NotFound("There is no model of this name.") from None
        if id.provider not in self._providers:
            raise NotFound("There is no provider of this name.")
        return self._providers[id.provider], id
