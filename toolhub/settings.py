"""Settings: how this hub is configured.

Everything that differs between hubs comes from environment variables named ``TOOLHUB_…`` or from ``.env``; the table of
``toolhub.variables`` declares each. With none set, the embedded default applies: SQLite, an in-memory broker and one process.
"""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import unquote, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from kernel.names import QUEUE_INVOCATIONS, QUEUES
from kernel.secret_files import read_or_make_secret
from toolhub.fixed_settings import (  # noqa: F401  Django reads them here
    CONTENT_SECURITY_POLICY,
    DIRECT_MIDDLEWARE,
    INSTALLED_APPS,
    MIDDLEWARE,
    OAUTH2_PROVIDER,
    OAUTH2_PROVIDER_APPLICATION_MODEL,
    REST_FRAMEWORK,
    SPECTACULAR_SETTINGS,
)
from toolhub.logs import build_logging
from toolhub.packages import find_template_folders
from toolhub.process_names import name_process
from toolhub.variables import *  # the table of TOOLHUB_… names

if VARIABLES.mistakes:
    raise ImproperlyConfigured(" ".join(VARIABLES.mistakes))

OAUTH2_PROVIDER = OAUTH2_PROVIDER | {"CIMD_ENABLED": TOOLHUB_CLIENT_DOCUMENTS}
TOOLHUB_EMBEDDED = not TOOLHUB_DATABASE_URL
TOOLHUB_ENVIRONMENT = TOOLHUB_ENVIRONMENT or ("Demonstration" if TOOLHUB_EMBEDDED else "Production")
if TOOLHUB_REDIS_URL and not TOOLHUB_DATABASE_URL:
    raise ImproperlyConfigured(
        "TOOLHUB_REDIS_URL goes with TOOLHUB_DATABASE_URL (production shape). Set both, the second alone, or neither (embedded "
        "default)."
    )

# Made silently in the embedded default only; elsewhere by `manage.py init`, and no process starts without (toolhub/startup.py).
TOOLHUB_SECRET_KEY_GIVEN = bool(TOOLHUB_SECRET_KEY)
SECRET_KEY = TOOLHUB_SECRET_KEY or (
    read_or_make_secret(TOOLHUB_SECRET_KEY_FILE) if TOOLHUB_EMBEDDED or TOOLHUB_SECRET_KEY_FILE.exists() else ""
)

DEFAULT_FROM_EMAIL = SERVER_EMAIL = TOOLHUB_EMAIL_FROM
_mail = urlsplit(TOOLHUB_EMAIL_URL)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if TOOLHUB_EMAIL_URL else 'dummy'}.EmailBackend"
EMAIL_HOST, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = (
    unquote(part or "") for part in (_mail.hostname, _mail.username, _mail.password)
)
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.scheme == "smtp", _mail.scheme == "smtps"
EMAIL_PORT = _mail.port or {"smtp": 587, "smtps": 465}.get(_mail.scheme, 25)
EMAIL_TIMEOUT = 10
DEBUG = False
ALLOWED_HOSTS = TOOLHUB_ALLOWED_HOSTS
_public = urlsplit(TOOLHUB_PUBLIC_URL)
# Behind a proxy a page's own origin is not the address that the hub itself is asked at.
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}".lower(), *TOOLHUB_TRUSTED_ORIGINS]

DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

ROOT_URLCONF = "toolhub.urls"
DIRECT_URLCONF = "toolhub.direct_urls"
ASGI_APPLICATION = "toolhub.asgi.application"
APPEND_SLASH = False
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "start"
CSRF_FAILURE_VIEW = "kernel.http.exception_handlers.csrf_failure"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates", *find_template_folders()],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.messages.context_processors.messages",
                "toolhub.console.build_frame_context",
            ],
            "builtins": [
                "kernel.templatetags.frames",
                "kernel.templatetags.tables",
                "kernel.templatetags.ui",
                "kernel.templatetags.words",
                "django.templatetags.i18n",
                "django.templatetags.static",
                "django_htmx.templatetags.django_htmx",
            ],
        },
    }
]

POSTGRESQL = "kernel.database.postgresql"  # Django's engine, with each statement bound to a tenant
if TOOLHUB_DATABASE_URL:
    DATABASES: dict[str, Any] = {"default": dj_database_url.parse(TOOLHUB_DATABASE_URL, engine=POSTGRESQL)}
    DATABASES["default"].setdefault("OPTIONS", {})
    DATABASES["default"]["OPTIONS"] |= {
        "pool": {"min_size": 1, "max_size": TOOLHUB_DATABASE_POOL, "timeout": 5},
        "connect_timeout": 5,
        "application_name": str(name_process(sys.argv)),  # by which `doctor` and `migrate` know processes
        # A network that is silently gone is noticed before a lease runs out.
        "tcp_user_timeout": 5000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "kernel.database.sqlite",  # Django's engine, with the writers of a process one after the other
            "NAME": TOOLHUB_DATA_DIR / "toolhub.sqlite3",
            "OPTIONS": {
                # IMMEDIATE: two transactions that read before they write would otherwise fail with "database is locked".
                "transaction_mode": "IMMEDIATE",
                "timeout": 5,  # seconds; shorter than the beat of a lease, so that a crowd at the file loses no result
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;",
            },
        }
    }

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None  # guardian: nobody is a person here without signing in
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Signing in (access/sign_in/adapters.py). Codes and passkeys are set up by each person on their own page.
ACCOUNT_ADAPTER = "access.sign_in.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"  # people are invited; there is nobody to verify
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[toolhub] "
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60  # for what `recently_authenticated` guards
ACCOUNT_RATE_LIMITS = {
    "login": "60/m/ip",
    "login_device": "60/m/key",  # of a device that somebody has signed in with, beside its address
    "login_failed": "20/m/ip,5/300s/key",  # the key: a person and an address
    "login_failed_person": "100/h/key",  # from everywhere together, but for devices that the person has used
    "login_failed_device": "10/300s/key",
}
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False  # other sessions end all the same: their hash does not fit any more
ACCOUNT_LOGOUT_REDIRECT_URL = "sign_in"
MFA_ADAPTER = "access.sign_in.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "toolhub"
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not TOOLHUB_PUBLIC_URL.startswith("https://")  # browsers do so for localhost only
SOCIALACCOUNT_ADAPTER = "access.sign_in.adapters.SocialAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True  # an address that the provider has verified is who the person is
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if TOOLHUB_OIDC_ISSUER:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": TOOLHUB_OIDC_NAME,
                "client_id": TOOLHUB_OIDC_CLIENT_ID,
                "secret": TOOLHUB_OIDC_CLIENT_SECRET,
                "settings": {"server_url": TOOLHUB_OIDC_ISSUER},
            }
        ],
    }
CACHES = {
    "default": {"BACKEND": "kernel.cache.ForgivingRedisCache", "LOCATION": TOOLHUB_REDIS_URL}
    if TOOLHUB_REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

OAUTH2_PROVIDER["OIDC_ISS_ENDPOINT"] = TOOLHUB_PUBLIC_URL  # the issuer, never read from a request
OAUTH2_PROVIDER["ACCESS_TOKEN_EXPIRE_SECONDS"] = TOOLHUB_CONNECTION_TOKEN_S

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 60 * 60
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TOOLHUB_PUBLIC_URL.startswith("https://")
# TLS ends at a proxy. Where one is named, its word on the caller's scheme is believed, so nobody is sent round in circles.
SECURE_HSTS_SECONDS = TOOLHUB_HSTS_S if SESSION_COOKIE_SECURE else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = False
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE and bool(TOOLHUB_PROXIES)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]  # asked by address, within the host or its network
# The subdomains are not the hub's to speak for. On plain HTTP within one host there is no TLS to ask for.
# Redirects over http go to this computer only, as native clients need (access/oauth/redirect_uris.py).
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021", "oauth2_provider.W008"]
if SESSION_COOKIE_SECURE:
    SILENCED_SYSTEM_CHECKS += ["security.W008"]  # toolhub.W002 says what is missing, and where
elif _public.hostname in ("127.0.0.1", "::1", "localhost"):
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = TOOLHUB_TIME_ZONE

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "static"  # built assets are committed, so there is nothing to collect
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "kernel.http.assets.HashedNames"},
}
WHITENOISE_MAX_AGE = 300  # seconds, for names without a hash, which no page uses: kernel/http/assets.py

# Celery only wakes workers: the database decides (docs/adr/0004).
CELERY: dict[str, Any] = {
    "broker_url": TOOLHUB_REDIS_URL or "memory://toolhub",
    "broker_transport": f"toolhub.brokers.{'redis' if TOOLHUB_REDIS_URL else 'in_process'}:Transport",
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_ignore_result": True,
    "task_acks_late": True,  # a worker asks for another message when it can run one
    "worker_prefetch_multiplier": 1,
    "worker_concurrency": TOOLHUB_WORKER_CONCURRENCY + TOOLHUB_WORKER_SPARE,
    "worker_pool": "threads",
    "worker_hijack_root_logger": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "task_default_queue": QUEUE_INVOCATIONS,
    "task_queues": [Queue(QUEUES[name]) for name in TOOLHUB_WORK_CLASSES],
    "task_create_missing_queues": True,  # who only sends names queues of other workers
    "task_publish_retry": False,
    "broker_transport_options": (
        {
            "socket_connect_timeout": 2,
            "socket_timeout": 5,
            "max_retries": 1,  # kombu's default tries for 6 s, with the sender's transaction open
            "interval_start": 0,
            "interval_step": 0.2,
            "interval_max": 0.2,
        }
        if TOOLHUB_REDIS_URL
        else {}
    ),
}

LOGGING = build_logging(ours=TOOLHUB_LOG_LEVEL or "INFO", rest=TOOLHUB_LOG_LEVEL or "WARNING", form=TOOLHUB_LOG_FORMAT)
