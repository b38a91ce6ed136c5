"""HTTP chats: what models that are asked over HTTP have in common, and the provider that has them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from kernel.problems import NotFound, SchemaInvalid
from llm.interfaces import ChatModel
from llm.messages import AttachmentRef, AudioRef, ImageRef
from llm.problems import ParameterUnsupported
from llm.providers.connections import build_http_client

if TYPE_CHECKING:
    from llm.interfaces import EmbedModel, RerankModel
    from llm.model_features import ModelFeatures
    from llm.provider_factory import ProviderConfig
    from llm.providers.http_client import HttpClient

# The bytes of what the hub holds under an id. Raises a Problem.
Resolver = Callable[[ImageRef | AudioRef | AttachmentRef], Awaitable[bytes]]

NOT_HELD = "This provider was connected without access to the pictures, sounds and files of the hub."


async def refuse_files(segment: ImageRef | AudioRef | AttachmentRef) -> bytes:  # noqa: ARG001 - a resolver's
    """The resolver where there is none."""
    raise ParameterUnsupported(NOT_HELD)


class HttpChat(ChatModel):
    """One model of a provider. All models of one share its connections."""

    dialect: ClassVar[str]  # of the tools
    provider: ClassVar[str]  # whose state is whose

    def __init__(self, name: str, http: HttpClient, key: str, features: ModelFeatures, resolve: Resolver) -> None:
        self.name = name
        self.http = http
        self.key = key
        self.features = features
        self.resolve = resolve


class HttpChatProvider:
    """One provider and its models. Options: ``networks``, ``proxy``, ``limits``, ``resolve``, ``check_address``."""

    chat: ClassVar[type[HttpChat]]
    address: ClassVar[str] = ""

    def __init__(self, cfg: ProviderConfig) -> None:
        if cfg.key and not (cfg.key.isascii() and cfg.key.isprintable()):
            raise SchemaInvalid.at("/key", "The key holds a character that no header takes; is it pasted whole?")
        self.cfg = cfg
        self.http = build_http_client(cfg, self.address)
        self._resolve: Resolver = cfg.options.get("resolve", refuse_files)

    def get_chat_model(self, name: str) -> ChatModel:
        return self.chat(name, self.http, self.cfg.key, self.find_features(name), self._resolve)

    @abstractmethod
    def find_features(self, name: str) -> ModelFeatures: ...

    def get_embed_model(self, name: str) -> EmbedModel:
        raise NotFound("This kind of provider has no models for vectors.")

    def get_rerank_model(self, name: str) -> RerankModel:
        raise NotFound("This kind of provider has no models that order texts.")

    async def aclose(self) -> None:
        await self.http.aclose()
