"""Kinds of providers that this program brings, each in a module that is imported when somebody connects the first of it.

The module has a function ``build_provider``. Some need libraries that a hub without models does without: whoever connects such a
provider is told what to install.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from llm.provider_factory import ProviderKind

LOCAL = "local"  # models in the process that asks them
MODULES = {
    kind: f"{__package__}.{module}"
    for kind, module in {
        "anthropic": "anthropic",
        "gemini": "gemini",
        LOCAL: "local",
        "openai": "openai_chat",
        "openai_compatible": "openai_compatible",
        "openai_responses": "openai_responses",
        "retrieval": "retrieval",
    }.items()
}
# Distributions by the name that is imported, and the extra of this program that has them.
EXTRAS = {"pydantic_ai": "models", "openai": "models", "anthropic": "models"}

# Modules that import each other in circles are seen half imported by a second thread that imports them meanwhile.
_ONE_AT_A_TIME = threading.Lock()
_imported: dict[str, Any] = {}


def load_kind(kind: str) -> ProviderKind:
    """The function that connects a provider of this kind. Raises SchemaInvalid where something is not installed."""
    module = _imported.get(kind)  # which waits for no import of another kind
    try:
        if module is None:
            with _ONE_AT_A_TIME:
                module = _imported[kind] = import_module(MODULES[kind])
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise SchemaInvalid.at(
            "/kind", f"Providers of the kind {kind} need packages that are not installed: requirements-{extra}.lock."
        ) from error
    build: ProviderKind = module.build_provider
    return build
