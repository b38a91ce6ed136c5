"""How is this hub configured?

Everything comes from environment variables named ``TOOLHUB_…`` (see ``dotenv-sample``), or from ``.env``. With none set, the
embedded default applies: SQLite, an in-memory broker and one process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from kombu import Queue

from sandbox.image import read_images
from toolhub.fixed_settings import (  # noqa: F401  Django reads them here
    CONTENT_SECURITY_POLICY,
    INSTALLED_APPS,
    MIDDLEWARE,
    REST_FRAMEWORK,
    SPECTACULAR_SETTINGS,
)
from toolhub.kernel.dotenv import take_settings_of_file
from toolhub.kernel.names import QUEUE_INVOCATIONS, QUEUES
from toolhub.kernel.secrets import read_or_make_secret
from toolhub.kernel.written import networks_of, runtimes_of
from toolhub.logs import logging_of

BASE_DIR = Path(__file__).resolve().parent.parent
try:
    take_settings_of_file(BASE_DIR)
except ValueError as error:
    raise ImproperlyConfigured(str(error)) from error


def env(name: str, default: str = "") -> str:
    return os.environ.get(name, default)


def env_int(name: str, default: int) -> int:
    text = env(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text!r}.") from None


TOOLHUB_DATA_DIR = Path(env("TOOLHUB_DATA_DIR", str(BASE_DIR / "var")))
TOOLHUB_DATABASE_URL = env("TOOLHUB_DATABASE_URL")
TOOLHUB_REDIS_URL = env("TOOLHUB_REDIS_URL")
TOOLHUB_EMBEDDED = not TOOLHUB_DATABASE_URL
TOOLHUB_BIND = env("TOOLHUB_BIND", "127.0.0.1:8000")
TOOLHUB_PUBLIC_URL = env("TOOLHUB_PUBLIC_URL", f"http://{TOOLHUB_BIND}")
TOOLHUB_ENVIRONMENT = env("TOOLHUB_ENVIRONMENT", "Demonstration" if TOOLHUB_EMBEDDED else "Production")
TOOLHUB_KEYSTORE = env("TOOLHUB_KEYSTORE", "file")  # or env, service
if TOOLHUB_KEYSTORE not in ("file", "env", "service"):
    raise ImproperlyConfigured(f"TOOLHUB_KEYSTORE must be file, env or service, not {TOOLHUB_KEYSTORE!r}.")
TOOLHUB_MASTER_KEYS = env("TOOLHUB_MASTER_KEYS")
TOOLHUB_KEY_SERVICE_URL = env("TOOLHUB_KEY_SERVICE_URL")
TOOLHUB_KEY_SERVICE_TOKEN = env("TOOLHUB_KEY_SERVICE_TOKEN")
TOOLHUB_KEY_FILE = Path(env("TOOLHUB_KEY_FILE", str(TOOLHUB_DATA_DIR / "keys.json")))
# The keys that logs are signed with; for the keeper only (empty: not on this host), and what the names of logs begin with.
_signing = env("TOOLHUB_SIGNING_KEY_FILE", str(TOOLHUB_DATA_DIR / "signing-keys.json"))
TOOLHUB_SIGNING_KEY_FILE = Path(_signing) if _signing else None
TOOLHUB_LOG_ORIGIN = env("TOOLHUB_LOG_ORIGIN")  # empty: the host of TOOLHUB_PUBLIC_URL
# Where events, metrics and checkpoints go beside the console.
TOOLHUB_EVENTS_DIR = env("TOOLHUB_EVENTS_DIR")
TOOLHUB_METRICS_TOKEN = env("TOOLHUB_METRICS_TOKEN")
TOOLHUB_METRICS_BIND = env("TOOLHUB_METRICS_BIND")
TOOLHUB_WITNESSES = env("TOOLHUB_WITNESSES").split()
TOOLHUB_ANCHOR_FILE = env("TOOLHUB_ANCHOR_FILE")
TOOLHUB_ANCHOR_GIT = env("TOOLHUB_ANCHOR_GIT")
TOOLHUB_ANCHOR_GIT_PUSH = env("TOOLHUB_ANCHOR_GIT_PUSH")
# The verifier: where its keeper keeps the newest checkpoint outside the database, how often it begins again, and its share of a CPU.
TOOLHUB_KEPT_CHECKPOINT_FILE = Path(env("TOOLHUB_KEPT_CHECKPOINT_FILE", str(TOOLHUB_DATA_DIR / "checkpoint.kept")))
TOOLHUB_VERIFY_EVERY_HOURS = env_int("TOOLHUB_VERIFY_EVERY_HOURS", 24)
TOOLHUB_VERIFY_SHARE_PERCENT = max(1, min(100, env_int("TOOLHUB_VERIFY_SHARE_PERCENT", 10)))
TOOLHUB_EXPORT_DAYS = env_int("TOOLHUB_EXPORT_DAYS", 7)  # then the content of an export goes
TOOLHUB_EXPORT_MAX_ROWS = env_int("TOOLHUB_EXPORT_MAX_ROWS", 5_000_000)
TOOLHUB_EXPORT_MAX_MB = env_int("TOOLHUB_EXPORT_MAX_MB", 2048)
TOOLHUB_TOOLS_PATH = [
    Path(part) for part in env("TOOLHUB_TOOLS_PATH", str(BASE_DIR / "tools")).split(os.pathsep) if part
]

if bool(TOOLHUB_DATABASE_URL) != bool(TOOLHUB_REDIS_URL):
    raise ImproperlyConfigured(
        "Set both TOOLHUB_DATABASE_URL and TOOLHUB_REDIS_URL (production shape), or neither (embedded default)."
    )

# Made silently in the embedded default only; elsewhere by `manage.py init`, and no process starts without (toolhub/startup.py).
TOOLHUB_SECRET_KEY_GIVEN = bool(env("TOOLHUB_SECRET_KEY"))
TOOLHUB_SECRET_KEY_FILE = Path(env("TOOLHUB_SECRET_KEY_FILE", str(TOOLHUB_DATA_DIR / "secret-key")))
SECRET_KEY = env("TOOLHUB_SECRET_KEY") or (
    read_or_make_secret(TOOLHUB_SECRET_KEY_FILE) if TOOLHUB_EMBEDDED or TOOLHUB_SECRET_KEY_FILE.exists() else ""
)

# Whom and what `manage.py init` makes.
TOOLHUB_OWNER_NAME = env("TOOLHUB_OWNER_NAME", "owner")
TOOLHUB_OWNER_EMAIL = env("TOOLHUB_OWNER_EMAIL")
TOOLHUB_OWNER_PASSWORD = env("TOOLHUB_OWNER_PASSWORD")
TOOLHUB_OWNER_PASSWORD_FILE = env("TOOLHUB_OWNER_PASSWORD_FILE")
TOOLHUB_HUB_ROLE_PASSWORD = env("TOOLHUB_HUB_ROLE_PASSWORD")  # of a role that owns no table; empty: none
TOOLHUB_TENANT = env("TOOLHUB_TENANT", "main")
TOOLHUB_TENANT_NAME = env("TOOLHUB_TENANT_NAME", "Main")

# Agents' tokens, and whom the hub asks by itself (identity providers, webhooks).
TOOLHUB_TOKEN_LIFETIME_S = env_int("TOOLHUB_TOKEN_LIFETIME_S", 3600)  # longest life of an identity provider's token
TOOLHUB_OUTBOUND_NETWORKS = networks_of(env("TOOLHUB_OUTBOUND_NETWORKS"), "TOOLHUB_OUTBOUND_NETWORKS")

# Mail: smtp://user:password@host:587 (STARTTLS), smtps://… (TLS), smtp+plain://… (neither, for a relay on this host).
TOOLHUB_EMAIL_URL = env("TOOLHUB_EMAIL_URL")
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env("TOOLHUB_EMAIL_FROM", "toolhub@localhost")
_mail = urlsplit(TOOLHUB_EMAIL_URL)
if TOOLHUB_EMAIL_URL and (_mail.scheme not in ("smtp", "smtps", "smtp+plain") or not _mail.hostname):
    raise ImproperlyConfigured("TOOLHUB_EMAIL_URL is smtp://user:password@host:port, smtps://… or smtp+plain://….")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if TOOLHUB_EMAIL_URL else 'dummy'}.EmailBackend"
EMAIL_HOST, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = (
    unquote(part or "") for part in (_mail.hostname, _mail.username, _mail.password)
)
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.scheme == "smtp", _mail.scheme == "smtps"
EMAIL_PORT = _mail.port or {"smtp": 587, "smtps": 465}.get(_mail.scheme, 25)
EMAIL_TIMEOUT = 10
DEBUG = False
ALLOWED_HOSTS = env("TOOLHUB_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in env("TOOLHUB_TRUSTED_ORIGINS").split(",") if origin]

# How long things may take, and how big they may be.
TOOLHUB_LEASE_S = env_int("TOOLHUB_LEASE_S", 15)  # a worker that has not renewed its lease for so long is lost
TOOLHUB_QUEUE_WAIT_S = env_int("TOOLHUB_QUEUE_WAIT_S", 20)  # a call that nobody started after so long is timed out
TOOLHUB_ASYNC_QUEUE_WAIT_S = env_int("TOOLHUB_ASYNC_QUEUE_WAIT_S", 3600)  # the same for a call that nobody waits for
TOOLHUB_SEGMENT_S = env_int("TOOLHUB_SEGMENT_S", 10)  # what a long run says becomes evidence so often
TOOLHUB_STREAMS_PER_AGENT = env_int("TOOLHUB_STREAMS_PER_AGENT", 20)  # event streams of one agent, in each web process
TOOLHUB_HOLD_S = env_int("TOOLHUB_HOLD_S", 24 * 60 * 60)  # a call that waits so long for a person has expired
TOOLHUB_SYNC_WAIT_S = env_int("TOOLHUB_SYNC_WAIT_S", 50)  # longest wait of a caller; common clients give up at 60 s
TOOLHUB_SWEEP_INTERVAL_S = env_int("TOOLHUB_SWEEP_INTERVAL_S", 1)
TOOLHUB_WORKER_CONCURRENCY = env_int(
    "TOOLHUB_WORKER_CONCURRENCY", 4
)  # calls of one tenant that a worker runs at a time
TOOLHUB_WORKER_SPARE = env_int("TOOLHUB_WORKER_SPARE", 1)  # places beside them that only other tenants get
TOOLHUB_WORK_CLASSES = [name for name in env("TOOLHUB_WORK_CLASSES", "quick,long").replace(" ", "").split(",") if name]
if not TOOLHUB_WORK_CLASSES or not set(TOOLHUB_WORK_CLASSES) <= set(QUEUES):
    raise ImproperlyConfigured(f"TOOLHUB_WORK_CLASSES is one or more of {', '.join(QUEUES)}.")
TOOLHUB_WEB_THREADS = env_int(
    "TOOLHUB_WEB_THREADS", 16
)  # requests that a web process works on at a time; any number waits
# How often failures may come in a minute before they are answered 429; 0: as often as they like.
TOOLHUB_RATE_FAILED_KEYS = env_int("TOOLHUB_RATE_FAILED_KEYS", 120)  # requests of one address without a valid key
TOOLHUB_RATE_REFUSED_CALLS = env_int("TOOLHUB_RATE_REFUSED_CALLS", 120)  # refused calls of one agent
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# The sandbox. `docker` runs tools in containers; `fake` is for tests without an engine and runs them in plain processes.
TOOLHUB_SANDBOX = env("TOOLHUB_SANDBOX", "docker")
TOOLHUB_SANDBOX_IMAGE = env("TOOLHUB_SANDBOX_IMAGE")  # empty: the tag of this source tree's own image
# JSON: more images by the name that manifests use, or others for python, browser and node
try:
    TOOLHUB_SANDBOX_IMAGES = read_images(env("TOOLHUB_SANDBOX_IMAGES"), python=TOOLHUB_SANDBOX_IMAGE)
except ValueError as error:
    raise ImproperlyConfigured(f"TOOLHUB_SANDBOX_IMAGES cannot be used. {error}") from error
# The weakest isolation of a call: shared, fresh, single or cold. Policy and manifests may ask for a stronger one.
TOOLHUB_SANDBOX_LEVEL = env("TOOLHUB_SANDBOX_LEVEL", "fresh")
if TOOLHUB_SANDBOX_LEVEL not in ("shared", "fresh", "single", "cold"):
    raise ImproperlyConfigured("TOOLHUB_SANDBOX_LEVEL is one of shared, fresh, single, cold.")
# Tools that an operator has marked as trusted, without side effect, run as plain processes; 0: in the sandbox, like all others.
TOOLHUB_DIRECT = env("TOOLHUB_DIRECT", "1") == "1"
TOOLHUB_FILES_MAX_MB = env_int("TOOLHUB_FILES_MAX_MB", 256)  # of one tenant, for tools that read or write files
TOOLHUB_CAPSULES_MAX_MB = env_int("TOOLHUB_CAPSULES_MAX_MB", 1024)  # of one tenant, for packages that were uploaded
TOOLHUB_SANDBOX_RUNTIMES = runtimes_of(env("TOOLHUB_SANDBOX_RUNTIMES", "{}"))  # {}: the engine's own choice
# Tools that may reach a host reach it at public addresses, and in these networks.
TOOLHUB_SANDBOX_NETWORKS = networks_of(env("TOOLHUB_SANDBOX_NETWORKS"), "TOOLHUB_SANDBOX_NETWORKS")
TOOLHUB_SANDBOX_CA_FILE = env("TOOLHUB_SANDBOX_CA_FILE")  # roots, as PEM, that tools trust beside the public ones
# Each process that runs tools has a pool of boxes.
TOOLHUB_SANDBOX_MAX_BOXES = env_int("TOOLHUB_SANDBOX_MAX_BOXES", 32)
TOOLHUB_SANDBOX_MAX_MEMORY_MB = env_int("TOOLHUB_SANDBOX_MAX_MEMORY_MB", 0)  # 0: half of the machine's memory
TOOLHUB_SANDBOX_READY = env_int("TOOLHUB_SANDBOX_READY", 1)  # made ahead; 0: no pool, a new box for each call
TOOLHUB_SANDBOX_IDLE_S = env_int("TOOLHUB_SANDBOX_IDLE_S", 300)  # an unused box is ended after so long
TOOLHUB_SANDBOX_RUN_DIR = env("TOOLHUB_SANDBOX_RUN_DIR")  # of sockets; empty: /run/toolhub, or where this user may
TOOLHUB_INSTANCE = env("TOOLHUB_INSTANCE", str(TOOLHUB_DATA_DIR.resolve()))  # whose boxes these are
TOOLHUB_DOCKER_URL = env("TOOLHUB_DOCKER_URL")  # empty: the local engine's socket, or DOCKER_HOST

# What tools need of others (registry/dependencies): where wheels come from, and where they are installed for the sandboxes.
TOOLHUB_DEPENDENCY_DIR = env("TOOLHUB_DEPENDENCY_DIR", str(TOOLHUB_DATA_DIR / "deps"))
TOOLHUB_PACKAGE_INDEX = env("TOOLHUB_PACKAGE_INDEX")  # empty: pip's own configuration
TOOLHUB_WHEELHOUSE = env("TOOLHUB_WHEELHOUSE")

ROOT_URLCONF = "toolhub.urls"
ASGI_APPLICATION = "toolhub.asgi.application"
APPEND_SLASH = False
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "overview"
CSRF_FAILURE_VIEW = "toolhub.kernel.handlers.csrf_failure"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.messages.context_processors.messages",
                "toolhub.console.shell",
            ],
            "builtins": [
                "toolhub.kernel.templatetags.ui",
                "django.templatetags.i18n",
                "django.templatetags.static",
                "django_htmx.templatetags.django_htmx",
            ],
        },
    }
]

POSTGRESQL = "toolhub.kernel.postgresql"  # Django's engine, with each statement bound to a tenant
if TOOLHUB_DATABASE_URL:
    DATABASES: dict[str, Any] = {"default": dj_database_url.parse(TOOLHUB_DATABASE_URL, engine=POSTGRESQL)}
    DATABASES["default"].setdefault("OPTIONS", {})
    DATABASES["default"]["OPTIONS"] |= {
        "pool": {"min_size": 1, "max_size": env_int("TOOLHUB_DATABASE_POOL", 20), "timeout": 5},
        "connect_timeout": 5,
        # A network that is silently gone is noticed before a lease runs out.
        "tcp_user_timeout": 5000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    }
else:
    DATABASES = {
        "default": {
            "ENGINE": "toolhub.kernel.sqlite",  # Django's engine, with the writers of a process one after the other
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

# Signing in (access/signing_in.py). Codes and passkeys are set up by each person on their own page.
ACCOUNT_ADAPTER = "access.signing_in.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"  # people are invited; there is nobody to verify
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[toolhub] "
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60  # for what `recently_authenticated` guards
ACCOUNT_RATE_LIMITS = {"login": "60/m/ip", "login_failed": "20/m/ip,5/300s/key"}
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = False  # other sessions end all the same: their hash does not fit any more
ACCOUNT_LOGOUT_REDIRECT_URL = "sign_in"
MFA_ADAPTER = "access.signing_in.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "toolhub"
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not TOOLHUB_PUBLIC_URL.startswith("https://")  # browsers do so for localhost only
TOOLHUB_REQUIRE_MFA = [role for role in env("TOOLHUB_REQUIRE_MFA").replace(" ", "").split(",") if role]
SOCIALACCOUNT_ADAPTER = "access.signing_in.SocialAdapter"
SOCIALACCOUNT_EMAIL_AUTHENTICATION = True  # an address that the provider has verified is who the person is
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
TOOLHUB_OIDC_ISSUER = env("TOOLHUB_OIDC_ISSUER")
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if TOOLHUB_OIDC_ISSUER:
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": env("TOOLHUB_OIDC_NAME", "Single sign-on"),
                "client_id": env("TOOLHUB_OIDC_CLIENT_ID"),
                "secret": env("TOOLHUB_OIDC_CLIENT_SECRET"),
                "settings": {"server_url": TOOLHUB_OIDC_ISSUER},
            }
        ],
    }
CACHES = {
    "default": {"BACKEND": "toolhub.kernel.cache.ForgivingRedisCache", "LOCATION": TOOLHUB_REDIS_URL}
    if TOOLHUB_REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 60 * 60
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = TOOLHUB_PUBLIC_URL.startswith("https://")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = env("TOOLHUB_TIME_ZONE", "UTC")

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "static"  # built assets are committed, so there is nothing to collect
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_MAX_AGE = 300  # seconds; names carry no hash, so a browser asks again soon after an upgrade

# Celery is a doorbell: the database decides (docs/adr/0004). Measured reasons for each setting: `evidence.md` §2.1.
CELERY: dict[str, Any] = {
    "broker_url": TOOLHUB_REDIS_URL or "memory://toolhub",
    "broker_transport": "toolhub.broker:Transport" if TOOLHUB_REDIS_URL else None,
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
        else {"polling_interval": 0.01}
    ),
}

LOGGING = logging_of(ours=env("TOOLHUB_LOG_LEVEL", "INFO"), rest=env("TOOLHUB_LOG_LEVEL", "WARNING"))
