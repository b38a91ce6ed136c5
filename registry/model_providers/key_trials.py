"""Key trials: whether a provider takes a key, before it is kept.

The provider is asked for its list of models with the key, which costs nothing and sends no text of anybody. A list that is open to
everybody proves nothing, so where the key is taken the list is asked for once more without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from kernel.problems import SchemaInvalid
from llm.problems import ProviderAnswerUnreadable, ProviderKeyRefused, ProviderRateLimited, ProviderUnavailable
from registry.model_providers.kind_checks import ANY_STATUS, NO_LIST, PROBES, REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.model_providers.kind_checks import Probe

USUAL_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
TOO_MANY, BAD_REQUEST, OK = 429, 400, 200
SERVER_ERROR = 500
_HEADERS: dict[str, Callable[[str], dict[str, str]]] = {
    "anthropic": lambda key: {"x-api-key": key},
    "gemini": lambda key: {"x-goog-api-key": key},
}


def _build_bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def try_key(*, kind: str, address: str, key: str) -> str:
    """A sentence where the key could not be tried, nothing where the provider takes it; raises a problem where it does not.

    Takes up to some seconds: not within a transaction.
    """
    probe, asked = PROBES.get(kind), address or USUAL_ADDRESSES.get(kind, "")
    if probe is None or not asked:
        return f"The key was not tried: providers of the kind {kind} have no list of models to ask for."
    url = probe.build_url(asked)
    status = _ask(url, probe, _HEADERS.get(kind, _build_bearer)(key))
    if status in REFUSED or (kind == "gemini" and status == BAD_REQUEST):
        raise ProviderKeyRefused(f"{url} does not take this key.", remedy="Is it pasted whole, and of this provider?")
    if status == TOO_MANY:
        raise ProviderRateLimited(f"{url} takes no more requests of this key for now.")
    if status >= SERVER_ERROR and status not in NO_LIST:
        raise ProviderUnavailable(f"{url} answered {status}.")
    if status in NO_LIST:
        return f"The key was not tried: {url} is not there, and nothing else costs nothing."
    if status != OK:
        raise ProviderAnswerUnreadable(f"{url} answered {status}, where a list of models was expected.")
    if _ask(url, probe, {}) == OK:
        return f"The key was not tried: {url} is open to everybody, so that it answers says nothing of the key."
    return ""


def _ask(url: str, probe: Probe, headers: dict[str, str]) -> int:
    try:
        said = {"Accept": "application/json", **probe.headers, **headers}
        return send_request(url, headers=said, statuses=ANY_STATUS, read=False).status
    except AddressRefused as error:
        raise SchemaInvalid.at("/address", str(error)) from None
    except OutboundFailed as error:
        raise ProviderUnavailable(f"The key could not be tried: {error}") from None
    except UnicodeEncodeError:
        raise SchemaInvalid.at("/key", "A key has letters, digits and signs of ASCII only.") from None
