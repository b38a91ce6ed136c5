"""Key authentication of served formats: a key of the hub, in any of the headers that SDKs send one in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.authentication.bearer import SCHEME, ApiKeyAuthentication, ApiKeyScheme

if TYPE_CHECKING:
    from rest_framework.request import Request


GOOGLES = "X-Goog-Api-Key"
HEADERS = ("X-Api-Key", GOOGLES)


class ServedKeyAuthentication(ApiKeyAuthentication):
    """A key of the hub, as a bearer or where Anthropic's and Google's SDKs send it. Sessions of people count nowhere here."""

    def read_header(self, request: Request) -> str:
        said = super().read_header(request)
        key = next((found for name in HEADERS if (found := request.headers.get(name))), "")
        return f"{SCHEME} {key}" if key and not said else said


class ServedKeyScheme(ApiKeyScheme):  # type: ignore[no-untyped-call]
    target_class = "invocations.model_calls.served.key_authentication.ServedKeyAuthentication"
    name = "servedKey"
