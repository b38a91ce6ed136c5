"""Key authentication of served formats: a key of the hub, in either of the headers that SDKs send one in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.authentication.bearer import SCHEME, ApiKeyAuthentication, ApiKeyScheme, resolve_header_principal
from kernel.database.tenancy import act_for

if TYPE_CHECKING:
    from rest_framework.request import Request

    from kernel.principal import Principal


class ServedKeyAuthentication(ApiKeyAuthentication):
    """A key of the hub, as a bearer or where Anthropic's SDKs send it. Sessions of people count nowhere here."""

    def principal_of(self, request: Request) -> Principal:
        said = request.headers.get("Authorization", "")
        if not said and (key := request.headers.get("X-Api-Key", "")):
            said = f"{SCHEME} {key}"
        principal = resolve_header_principal(said, address=request.META.get("REMOTE_ADDR", ""))
        act_for(principal.tenant_id)
        return principal


class ServedKeyScheme(ApiKeyScheme):  # type: ignore[no-untyped-call]
    target_class = "invocations.model_calls.served.key_authentication.ServedKeyAuthentication"
    name = "servedKey"
