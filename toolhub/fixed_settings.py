"""Fixed settings: those that are the same for every hub.

What a hub consists of, and what it answers browsers and agents. Nothing of this comes from the environment (:mod:`toolhub.settings`).
"""

from __future__ import annotations

from csp.constants import NONE, SELF

from kernel.http.api_versions import API_VERSION

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "csp",
    "guardian",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "oauth2_provider",
    "rest_framework",
    "drf_spectacular",
    "kernel",
    "evidence",
    "access",
    "registry",
    "invocations",
    "toolhub",
]

MIDDLEWARE = [
    "kernel.http.middleware.assign_request_id",
    "kernel.database.tenancy.scoped_request",
    "kernel.http.compression.PageCompression",
    "django.middleware.security.SecurityMiddleware",
    "kernel.http.assets.Assets",
    "csp.middleware.CSPMiddleware",
    "kernel.http.middleware.refuse_nul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "access.middleware.attach_principal",
    "access.display.middleware.apply_display",
    "kernel.http.middleware.Problems",
    "allauth.account.middleware.AccountMiddleware",
]

# Of requests that make calls, to `DIRECT_URLCONF`: what is above without what only browsers need (kernel/http/direct_routes.py).
DIRECT_MIDDLEWARE = [
    "kernel.http.middleware.assign_request_id",
    "kernel.database.tenancy.scoped_request",
    "django.middleware.security.SecurityMiddleware",
    "kernel.http.direct_routes.write_content_policy",
    "kernel.http.middleware.refuse_nul",
    "kernel.http.direct_routes.choose_language",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "access.display.middleware.apply_display",
]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"  # its own: migrations ask for the name
# All of RFC 9700, also where it is the library's default to come. Its tables of tokens stay empty: access/oauth/validator.py.
OAUTH2_PROVIDER = {
    "OAUTH2_VALIDATOR_CLASS": "access.oauth.validator.HubValidator",
    "ACCESS_TOKEN_GENERATOR": "access.connections.token_texts.make_access_token",
    "REFRESH_TOKEN_GENERATOR": "access.connections.token_texts.make_refresh_token",
    "SCOPES": {},  # the validator says which there are
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http", "cursor", "vscode", "vscode-insiders", "windsurf"],
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "PKCE_REQUIRED": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "ROTATE_REFRESH_TOKEN": True,
    "CIMD_ENABLED": True,
    "CIMD_METADATA_FETCHER": "access.oauth.client_documents.DocumentFetcher",
    "CIMD_REGISTRATION_PERMISSION_CLASSES": ("access.oauth.client_documents.FetchPermission",),
    "DCR_ENABLED": False,  # ours: access/oauth/registration.py
    "OIDC_ENABLED": False,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["access.authentication.bearer.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["access.permissions.HoldsRequiredScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["kernel.http.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "kernel.http.endpoint_schemas.EndpointSchema",
    "EXCEPTION_HANDLER": "invocations.request_tallies.api_exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # what an answer looks like is asked for in Accept, not in the address
}
SPECTACULAR_SETTINGS = {
    "TITLE": "toolhub",
    "DESCRIPTION": "Discover and call tools under the organisation's rules. Errors: see `/errors`.",
    "VERSION": API_VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_PATCH": False,  # a PATCH says itself which of its fields may be left out
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    # Sets of words that stand in fields of one name: programs made from the document read these names.
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_NAME_OVERRIDES": {
        "AgentScopeEnum": "access.roles.AGENT_SCOPES",
        "BudgetDimensionEnum": "access.models.Dimension",
        "BudgetScopeEnum": "access.models.BudgetScope",
        "ByMailEnum": "access.notifications.api.BY_MAIL",
        "ByWebhookEnum": "access.notifications.api.BY_WEBHOOK",
        "CallStatusEnum": "invocations.answer.answer_serializers.CALL_STATUS",
        "CallbackDeliveryStateEnum": "invocations.callbacks.api.STATES",
        "ChainStateEnum": "invocations.chains.models.ChainState",
        "ChainStepStateEnum": "invocations.chains.models.StepState",
        "ChannelStateEnum": "access.notifications.api.STATES",
        "ConsentModeEnum": "access.models.ConsentMode",
        "EndpointStateEnum": "invocations.callbacks.api.ENDPOINT_STATES",
        "GrantStateEnum": "access.grants.api.STATES",
        "ImportKindEnum": "registry.imports.models.ImportKind",
        "ImportStateEnum": "registry.imports.models.ImportState",
        "IntoFilesEnum": "evidence.sinks.api.INTO_FILES",
        "InvocationStateEnum": "invocations.models.State",
        "KeyStateEnum": "access.agents.api.KEY_STATES",
        "LayerEnum": "access.policies.api.LAYERS",
        "ModelCircuitStateEnum": "registry.models.ModelCircuitState",
        "ModelStateEnum": "registry.models.ModelProviderState",
        "NotificationChannelEnum": "access.models.Notification.Channel",
        "NotificationEventEnum": "access.notifications.services.EVENTS",
        "PermissionEnum": "access.roles.PERMISSIONS",
        "OfAgentEnum": "access.halts.api.OF_AGENT",
        "OfToolEnum": "access.halts.api.OF_TOOL",
        "OfVersionEnum": "access.halts.api.OF_VERSION",
        "PolicyStateEnum": "access.models.PolicyState",
        "ReachEnum": "access.models.Reach",
        "ScopesEnum": "access.roles.SCOPES",
        "ReturnStateEnum": "access.models.ReturnState",
        "ServerAccountStateEnum": "access.models.ServerAccountState",
        "SinkChannelEnum": "evidence.models.SinkChannel.values",
        "SinkModeEnum": "evidence.models.SinkMode.values",
        "SinkStateEnum": "evidence.models.SinkState.values",
        "ToolStateEnum": "registry.models.ToolState",
    },
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "toolhub.openapi.document_problems"],
}
