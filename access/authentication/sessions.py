"""Session authentication: the person who sends a request to the API.

A few endpoints are for people: what they change decides what people may do. A person is known by the session that they have from
signing in at the console, acts in the tenant that they chose there, and must set up a second factor where what they hold asks for one.
A request that changes something carries the token against forgery, as forms do (``X-CSRFToken``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import SessionAuthentication

from access.middleware import principal_of_user, tenants_for
from access.sign_in.adapters import must_set_up_second_factor
from kernel.database.tenancy import act_for
from kernel.problems import Forbidden

if TYPE_CHECKING:
    from rest_framework.request import Request


class PersonAuthentication(SessionAuthentication):
    """``request.user`` is the :class:`Principal`. Whoever sends a key is an agent, signed in or not."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        asked = request._request
        if request.headers.get("Authorization") or not asked.user.is_authenticated:
            return None
        self.enforce_csrf(request)
        tenant, _ = tenants_for(asked)
        if tenant is None:
            return None
        act_for(tenant.pk)
        if must_set_up_second_factor(asked.user, tenant):
            raise Forbidden(
                "What you may do here asks for a second factor.", remedy="Set one up in the console: Sign-in."
            )
        return principal_of_user(asked.user, tenant), None


class PersonScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tells drf-spectacular what the cookie is."""

    target_class = "access.authentication.sessions.PersonAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "Of a person who is signed in at the console. To change something, also the header X-CSRFToken.",
        }
