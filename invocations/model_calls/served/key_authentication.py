"""Key authentication of served formats: a key of the hub, in either of the headers that SDKs send one in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.authentication.bearer import SCHEME, ApiKeyAuthentication, ApiKeyScheme

if TYPE_CHECKING:
    from rest_framework.request import Request


class ServedKeyAuthentication(ApiKeyAuthentication):
    """A key of the hub, as a bearer or where Anthropic's SDKs send it. Sessions of people count nowhere here."""

    def read_header(self, request: Request) -> str:
        said, key = super().read_header(request), request.headers.get("X-Api-Key", "")
        return f"{SCHEME} {key}" if key and not said else said


class ServedKeyScheme(ApiKeyScheme):  # type: ignore[no-untyped-call]
    target_class = "invocations.model_calls.served.key_authentication.ServedKeyAuthentication"
    name = "servedKey"
