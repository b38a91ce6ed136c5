"""Tenant providers: the providers that tenants have connected, ready to be asked.

What a provider's row says is read for each call, so a change counts with the next one; the connected provider, with its
connections, is kept while the row says the same. A run keeps the model that it began with.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings as of_the_hub

from invocations.model_calls.held_files import read_offered_file
from invocations.model_calls.kept_providers import shelf
from invocations.model_calls.model_attempts import ModelAttempt
from invocations.problems import ModelNotReady
from kernel.database.connections import database_time
from kernel.http.outbound import list_allowed_networks
from kernel.problems import Problem, SchemaInvalid
from llm.interfaces import ChatModel, EmbedModel, RerankModel
from llm.model_features import ModelFeatures, Treatment
from llm.prefixed_models import PrefixedChat
from llm.provider_factory import ProviderConfig, list_foreign_kinds
from llm.providers.http_client import TimeLimits
from llm.providers.kinds import LOCAL, MODULES, load_kind
from registry.model_providers.circuits import check_circuit
from registry.model_providers.settings import OF_THE_HUB, ProviderSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from invocations.decide.preflight import Preflight
    from invocations.model_calls.asked_providers import AskedProvider
    from invocations.models import Invocation
    from llm.provider_factory import ProviderFactory, ProviderKind
    from registry.models import ModelProvider
    from unitools.manifest import ModelPart

Model = ChatModel | EmbedModel | RerankModel
M = TypeVar("M", ChatModel, EmbedModel)
KINDS: dict[str, ProviderKind] = {}  # beside those that the hub brings, and those of entry points


def forget_providers() -> None:
    """For tests, and where kinds have changed."""
    shelf.clear()


def check_provider_ready(part: ModelPart, provider: AskedProvider) -> None:
    """Is there anybody to ask? Its key was looked for with the other settings of the model.

    What talks to a kind of provider is imported here by the first call of one, before it has a lease that an import may outlast.
    """
    if (kind := provider.row.kind) in MODULES and kind not in KINDS:
        try:
            load_kind(kind)
        except SchemaInvalid as error:
            raise ModelNotReady(error.detail) from error
    elif kind not in KINDS and kind not in list_foreign_kinds():
        raise ModelNotReady(f"This hub has no providers of the kind {kind}.")
    if not part.fallbacks:
        check_circuit(provider.circuit, database_time())


def build_provider_config(provider: ModelProvider, key: str) -> ProviderConfig:
    settings = ProviderSettings.from_json(provider.settings)
    options = {name: value for name, value in settings.options.items() if name not in OF_THE_HUB}
    options |= {
        "limits": TimeLimits(**asdict(settings.timeouts)),
        "networks": tuple(list_allowed_networks()),
        "resolve": read_offered_file,
    }
    if provider.kind == LOCAL:
        options["files"] = list_model_files()
    return ProviderConfig(kind=provider.kind, base_url=provider.address, key=key, options=options)


def list_model_files() -> dict[str, str]:
    """The models of this machine, by the names that files have without their ending."""
    return {file.stem: str(file) for file in sorted(of_the_hub.TOOLHUB_LOCAL_MODELS.glob("*.gguf"))}


def build_attempts(invocation: Invocation, preflight: Preflight) -> Iterator[ModelAttempt]:
    """The model of an accepted call and its fallbacks, with their keys opened. A fallback that is not ready is left out."""
    first, *others = preflight.candidates
    yield build_attempt(first, tenant_id=invocation.tenant_id)
    for each in others:
        try:
            yield build_attempt(each, tenant_id=invocation.tenant_id)
        except Problem as problem:
            preflight.left_out[each.decision_context.tool] = problem.reason


def build_attempt(preflight: Preflight, *, tenant_id: UUID) -> ModelAttempt:
    version, asked = preflight.version, preflight.provider
    assert version is not None
    assert asked is not None
    part = version.manifest.model
    assert part is not None
    provider = asked.row
    config = build_provider_config(provider, asked.open_key())
    try:
        kept = shelf.take(tenant_id, part.provider, config, KINDS)
    except (
        SchemaInvalid
    ) as error:  # a mistake in the provider's settings, or a kind that does not load: none of the caller's
        raise ModelNotReady(error.detail) from error
    settings = ProviderSettings.from_json(provider.settings)
    try:
        model = find_model(part, kept.factory)
        if isinstance(model, ChatModel) and preflight.model_prefix is not None:
            model = PrefixedChat(model, preflight.model_prefix.text)
    except BaseException:
        shelf.put_back(kept)
        raise
    return ModelAttempt(preflight, provider, settings, model, kept, asked.circuit)


def find_model(part: ModelPart, factory: ProviderFactory) -> Model:
    id = f"{part.provider}:{part.name}"
    match part.operation:
        case "embed":
            return _with_features(factory.get_embed_model(id), part)
        case "rerank":
            return factory.get_rerank_model(id)
        case _:
            return _with_features(factory.get_chat_model(id), part)


def _with_features(model: M, part: ModelPart) -> M:
    """What the tenant says of a model stands over what its provider's adapter believes."""
    if not part.features:
        return model
    said = {name: Treatment(treatment) for name, treatment in part.features.items()}
    mine = copy(model)
    mine.features = ModelFeatures({**model.features.table, **said}, model.features.max_output_tokens)
    return mine
