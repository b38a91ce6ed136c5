"""Tenant providers: the providers that tenants have connected, ready to be asked.

What a provider's row says is read for each call, so a change counts with the next one; the connected provider, with its
connections, is kept while the row says the same. A run keeps the model that it began with.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import copy
from dataclasses import asdict
from functools import cache
from importlib.metadata import entry_points
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from invocations.model_calls.held_files import read_offered_file
from invocations.problems import ModelNotReady
from kernel.http.outbound import list_allowed_networks
from kernel.problems import SchemaInvalid
from llm.interfaces import ChatModel, EmbedModel, RerankModel
from llm.model_features import ModelFeatures, Treatment
from llm.provider_factory import GROUP, ProviderConfig, ProviderFactory
from llm.providers.http_client import TimeLimits
from llm.providers.kinds import MODULES, load_kind
from llm.retries import RetriedChat, RetryBounds
from registry.installations.services import settings_for_run
from registry.model_providers.manifests import KEY
from registry.model_providers.settings import OF_THE_HUB, ProviderSettings
from registry.models import ModelProvider

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.decide.preflight import Preflight
    from invocations.models import Invocation
    from llm.provider_factory import ProviderKind
    from unitools.manifest import ModelPart

Model = ChatModel | EmbedModel | RerankModel
M = TypeVar("M", ChatModel, EmbedModel)
MAX_PROVIDERS = 1024
KINDS: dict[str, ProviderKind] = {}  # beside those that the hub brings, and those of entry points

_kept: OrderedDict[tuple[UUID, str], tuple[ProviderConfig, ProviderFactory]] = OrderedDict()
_lock = Lock()


def forget_providers() -> None:
    """For tests, and where kinds have changed."""
    with _lock:
        _kept.clear()


def load_provider(part: ModelPart, *, tenant_id: UUID) -> ModelProvider:
    found = ModelProvider.objects.filter(tenant_id=tenant_id, name=part.provider).first()
    if found is None:
        raise ModelNotReady(f"The provider {part.provider} is not connected any more.")
    return found


def check_provider_ready(part: ModelPart, *, tenant_id: UUID) -> None:
    """Is there anybody to ask? Its key was looked for with the other settings of the model.

    What talks to a kind of provider is imported here by the first call of one, before it has a lease that an import may outlast.
    """
    kind = load_provider(part, tenant_id=tenant_id).kind
    if kind in KINDS:
        return
    if kind in MODULES:
        try:
            load_kind(kind)
        except SchemaInvalid as error:
            raise ModelNotReady(error.detail) from error
    elif kind not in list_foreign_kinds():
        raise ModelNotReady(f"This hub has no providers of the kind {kind}.")


@cache
def list_foreign_kinds() -> frozenset[str]:
    """Those of other distributions. To look through all that is installed takes longer than the rest of a preflight."""
    return frozenset(entry_points(group=GROUP).names)


def build_provider_config(provider: ModelProvider, key: str) -> ProviderConfig:
    settings = ProviderSettings.from_json(provider.settings)
    options = {name: value for name, value in settings.options.items() if name not in OF_THE_HUB}
    options |= {
        "limits": TimeLimits(**asdict(settings.timeouts)),
        "networks": tuple(list_allowed_networks()),
        "resolve": read_offered_file,
    }
    return ProviderConfig(kind=provider.kind, base_url=provider.address, key=key, options=options)


def connect_provider(tenant_id: UUID, name: str, config: ProviderConfig) -> ProviderFactory:
    """The connected provider: the one that is kept, or a new one where its settings or its key have changed."""
    with _lock:
        kept = _kept.get((tenant_id, name))
    if kept is not None and kept[0] == config:
        return kept[1]
    factory = ProviderFactory(KINDS)
    factory.register(name, config)
    with _lock:
        _kept[tenant_id, name] = (config, factory)
        while len(_kept) > MAX_PROVIDERS:
            _kept.popitem(last=False)
    return factory


def find_model(invocation: Invocation, preflight: Preflight) -> Model:
    """The model of an accepted call, with its key opened."""
    assert preflight.version is not None
    assert invocation.version is not None
    part = preflight.version.manifest.model
    assert part is not None
    invocation.version.manifest = preflight.version.manifest.document
    _, secrets = settings_for_run(tenant_id=invocation.tenant_id, name=invocation.tool, version=invocation.version)
    provider = load_provider(part, tenant_id=invocation.tenant_id)
    config = build_provider_config(provider, secrets.get(KEY, ""))
    factory, id = connect_provider(invocation.tenant_id, part.provider, config), f"{part.provider}:{part.name}"
    match part.operation:
        case "embed":
            return _with_features(factory.get_embed_model(id), part)
        case "rerank":
            return factory.get_rerank_model(id)
        case _:
            retries = RetryBounds(most=ProviderSettings.from_json(provider.settings).retries)
            return _with_features(RetriedChat(factory.get_chat_model(id), retries), part)


def _with_features(model: M, part: ModelPart) -> M:
    """What the tenant says of a model stands over what its provider's adapter believes."""
    if not part.features:
        return model
    said = {name: Treatment(treatment) for name, treatment in part.features.items()}
    mine = copy(model)
    mine.features = ModelFeatures({**model.features.table, **said}, model.features.max_output_tokens)
    return mine
