"""The hub: where it is and keeps its data, its keys, who signs in, and its mail."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kernel.variables import INIT, KEEPER, MAKE, UPKEEP, WEB, WORKER, read_address, read_mail_address, read_time_zone
from toolhub.variables.table import BASE_DIR, VARIABLES

_group = VARIABLES.group
_text, _number, _choice = VARIABLES.text, VARIABLES.number, VARIABLES.choice
_secret = partial(VARIABLES.text, secret=True)
_HTTP = ("https", "http")
_ROLES = ("owner", "operator", "reviewer", "auditor", "developer")  # access.roles, which needs Django


def _optional_path(name: str, *, about: str, example: str) -> Path | None:
    text = _text(name, allowed="a path, or empty", roles=(KEEPER,), example=example, about=about)
    return Path(text) if text else None


_group("Where the hub is")
TOOLHUB_BIND = VARIABLES.value(
    "TOOLHUB_BIND",
    "127.0.0.1:8000",
    read_address,
    "a host and a port, as 127.0.0.1:8000",
    roles=(WEB, MAKE),
    about="Address and port of the console and the API.",
)
TOOLHUB_PROBE_BIND = VARIABLES.value(
    "TOOLHUB_PROBE_BIND",
    "",
    lambda text: text and read_address(text),
    "a host and a port, as 127.0.0.1:8001",
    roles=(WORKER, UPKEEP, KEEPER),
    example="127.0.0.1:8001",
    about="Where a process that serves no requests answers /healthz and /readyz, for health checks; of each on a host another.",
)
TOOLHUB_DRAIN_S = _number(
    "TOOLHUB_DRAIN_S",
    5,
    roles=(WEB,),
    unit="seconds",
    about="After a web process was told to end, it answers 503 at /readyz for so long and goes on serving, so that a balancer "
    "sends requests elsewhere. The embedded default ends at once.",
)
TOOLHUB_PUBLIC_URL = VARIABLES.url(
    "TOOLHUB_PUBLIC_URL",
    f"http://{TOOLHUB_BIND}",
    schemes=_HTTP,
    shown="http:// and TOOLHUB_BIND",
    example="https://hub.example.org",
    about="What people and agents type, if a proxy stands in front.",
)
TOOLHUB_ALLOWED_HOSTS = VARIABLES.listed(
    "TOOLHUB_ALLOWED_HOSTS",
    "127.0.0.1,localhost,[::1]",
    roles=(WEB,),
    example="hub.example.org",
    about="Host names that the hub answers to.",
)
TOOLHUB_TRUSTED_ORIGINS = VARIABLES.listed(
    "TOOLHUB_TRUSTED_ORIGINS",
    roles=(WEB,),
    example="https://hub.example.org",
    about="Origins whose forms are accepted beside that of TOOLHUB_PUBLIC_URL.",
)
TOOLHUB_PROXIES = VARIABLES.networks(
    "TOOLHUB_PROXIES",
    roles=(WEB,),
    example="127.0.0.1/32",
    about="Proxies whose word on a caller's address and scheme (X-Forwarded-For, X-Forwarded-Proto) is believed; empty: nobody's. "
    "With an https TOOLHUB_PUBLIC_URL, what comes over http is then sent there.",
)
TOOLHUB_HSTS_S = _number(
    "TOOLHUB_HSTS_S",
    365 * 24 * 60 * 60,
    least=0,
    roles=(WEB,),
    unit="seconds",
    about="With an https TOOLHUB_PUBLIC_URL: how long browsers keep to https after each answer (Strict-Transport-Security). "
    "0: they are not told.",
)
TOOLHUB_ENVIRONMENT = _text(
    "TOOLHUB_ENVIRONMENT",
    roles=(WEB,),
    shown="Demonstration in the embedded shape, Production in the production shape",
    example="Production",
    about="Shown in the console's header.",
)
TOOLHUB_TIME_ZONE = VARIABLES.value(
    "TOOLHUB_TIME_ZONE",
    "UTC",
    read_time_zone,
    "a time zone of the IANA database, as Europe/Berlin",
    about="Time zone in which the console shows times.",
)

_group("Where its data is")
TOOLHUB_DATA_DIR = VARIABLES.path(
    "TOOLHUB_DATA_DIR",
    BASE_DIR / "var",
    shown="var beside the code",
    example="./var",
    about="Folder of the database file of the embedded shape, of keys that are files, and of logs.",
)
TOOLHUB_DATABASE_URL = VARIABLES.url(
    "TOOLHUB_DATABASE_URL",
    schemes=("postgresql", "postgres"),
    secret=True,
    example="postgresql://toolhub:PASSWORD@127.0.0.1:5432/toolhub",
    about="The database of the production shape, in which web and worker are processes of their own, and "
    "TOOLHUB_REDIS_URL makes calls quick. With neither, the embedded shape keeps a SQLite file.",
)
TOOLHUB_REDIS_URL = VARIABLES.url(
    "TOOLHUB_REDIS_URL",
    schemes=("redis", "rediss", "unix"),
    secret=True,
    example="redis://default:PASSWORD@127.0.0.1:6379/0",
    about="Broker and wake-ups of the production shape, with TOOLHUB_DATABASE_URL. Without it PostgreSQL wakes the workers: slower, "
    "and rates are counted by each process for itself.",
)
TOOLHUB_DATABASE_POOL = _number(
    "TOOLHUB_DATABASE_POOL", 20, least=1, about="Connections that one process keeps to PostgreSQL, at most."
)

_group("Keys")
TOOLHUB_KEYSTORE = _choice(
    "TOOLHUB_KEYSTORE",
    "file",
    of=("file", "env", "service"),
    about="Where the master keys are: in TOOLHUB_KEY_FILE, in TOOLHUB_MASTER_KEYS (env), or in a key management service.",
)
TOOLHUB_MASTER_KEYS = _secret("TOOLHUB_MASTER_KEYS", about="For the key store env: the JSON that a key file holds.")
TOOLHUB_KEY_SERVICE_URL = VARIABLES.url(
    "TOOLHUB_KEY_SERVICE_URL",
    schemes=_HTTP,
    example="https://keys.example.org/toolhub",
    about="For the key store service: its address.",
)
TOOLHUB_KEY_SERVICE_TOKEN = _secret(
    "TOOLHUB_KEY_SERVICE_TOKEN", about="What the service knows this hub by; sent as a bearer token."
)
TOOLHUB_KEY_FILE = VARIABLES.path(
    "TOOLHUB_KEY_FILE",
    TOOLHUB_DATA_DIR / "keys.json",
    shown="keys.json in TOOLHUB_DATA_DIR",
    example="./var/keys.json",
    about="The master keys, which encrypt the snapshots. A lost key file means snapshots that nobody can read: back it up.",
)
TOOLHUB_SIGNER = _choice(
    "TOOLHUB_SIGNER",
    "file",
    of=("file", "token", "transit"),
    roles=(KEEPER,),
    about="Where the keys are that sign the logs of evidence: in TOOLHUB_SIGNING_KEY_FILE, in a PKCS#11 token, or in the transit "
    "engine of OpenBao or Vault. Only for the keeper (`manage.py keep`).",
)
_signing = _text(
    "TOOLHUB_SIGNING_KEY_FILE",
    str(TOOLHUB_DATA_DIR / "signing-keys.json"),
    allowed="a path, or empty",
    roles=(KEEPER, INIT),
    shown="signing-keys.json in TOOLHUB_DATA_DIR",
    empty="no signing key is on this host",
    example="./var/signing-keys.json",
    about="For the signer file: the keys that sign the logs of evidence. Only the keeper (`manage.py keep`) reads it; elsewhere "
    "leave it empty. Back it up.",
)
TOOLHUB_SIGNING_KEY_FILE = Path(_signing) if _signing else None
TOOLHUB_SIGNING_PKCS11_URI = _text(
    "TOOLHUB_SIGNING_PKCS11_URI",
    allowed="a PKCS#11 URI",
    roles=(KEEPER,),
    example="pkcs11:token=toolhub?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=file:/run/secrets/signing-pin",
    about="For the signer token: which token, by its library, its name or serial and a file with the PIN (RFC 7512). `object=` before "
    "the question mark keeps the keys of several hubs in one token apart.",
)
TOOLHUB_SIGNING_TRANSIT_URL = VARIABLES.url(
    "TOOLHUB_SIGNING_TRANSIT_URL",
    schemes=_HTTP,
    roles=(KEEPER,),
    example="https://bao.example.org:8200/v1/transit",
    about="For the signer transit: the address of the engine.",
)
TOOLHUB_SIGNING_TRANSIT_PREFIX = _text(
    "TOOLHUB_SIGNING_TRANSIT_PREFIX",
    "toolhub",
    roles=(KEEPER,),
    about="For the signer transit: what the names of its keys begin with, so that several hubs keep theirs apart.",
)
TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE = _optional_path(
    "TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE",
    example="/run/secrets/transit-token",
    about="For the signer transit: a file with the token, which is read again for each request, so that an agent may renew it.",
)
TOOLHUB_SIGNING_TRANSIT_CA = _optional_path(
    "TOOLHUB_SIGNING_TRANSIT_CA",
    example="/etc/toolhub/bao-ca.pem",
    about="For the signer transit: certificates of the engine's authority, where it is none that everybody trusts.",
)
TOOLHUB_LOG_ORIGIN = _text(
    "TOOLHUB_LOG_ORIGIN",
    shown="the host of TOOLHUB_PUBLIC_URL",
    example="hub.example.org",
    about="What the names of logs begin with; never change it once something was sealed.",
)
TOOLHUB_SECRET_KEY = _secret(
    "TOOLHUB_SECRET_KEY",
    shown="read from TOOLHUB_SECRET_KEY_FILE",
    example="",
    about="Signs sessions. `manage.py init` (and the embedded shape by itself) makes one in the file below unless it is set "
    "here. A good one: openssl rand -hex 32",
)
TOOLHUB_SECRET_KEY_FILE = VARIABLES.path(
    "TOOLHUB_SECRET_KEY_FILE",
    TOOLHUB_DATA_DIR / "secret-key",
    shown="secret-key in TOOLHUB_DATA_DIR",
    example="./var/secret-key",
    about="The file of the key that signs sessions, when it is not given by itself.",
)

_group("The first owner and tenant, made by manage.py init")
TOOLHUB_OWNER_NAME = _text("TOOLHUB_OWNER_NAME", "owner", roles=(INIT,), about="The user name of the first owner.")
TOOLHUB_OWNER_EMAIL = _text("TOOLHUB_OWNER_EMAIL", roles=(INIT,), about="The first owner's e-mail address.")
TOOLHUB_OWNER_PASSWORD = _secret(
    "TOOLHUB_OWNER_PASSWORD",
    roles=(INIT,),
    about="The first owner's password. Neither it nor its file: one is generated and shown once.",
)
TOOLHUB_OWNER_PASSWORD_FILE = _text(
    "TOOLHUB_OWNER_PASSWORD_FILE",
    allowed="a path",
    roles=(INIT,),
    example="/run/secrets/owner-password",
    about="A file that holds the first owner's password.",
)
TOOLHUB_HUB_ROLE_PASSWORD = _secret(
    "TOOLHUB_HUB_ROLE_PASSWORD",
    roles=(INIT,),
    about="Of the database role toolhub_hub, which owns no table and as which web, workers and keeper connect: init gives the "
    "role this password. Empty: no such role.",
)
TOOLHUB_TENANT = _text("TOOLHUB_TENANT", "main", roles=(INIT,), about="The short name of the first tenant.")
TOOLHUB_TENANT_NAME = _text(
    "TOOLHUB_TENANT_NAME", "Main", roles=(INIT,), about="The name of the first tenant, as people see it."
)

_group("Sign-in")
TOOLHUB_REQUIRE_MFA = VARIABLES.listed(
    "TOOLHUB_REQUIRE_MFA",
    of=_ROLES,
    roles=(WEB,),
    example="owner,operator",
    about="Roles whose people must set up a second factor before they see anything; with any, also whoever holds a permission "
    "beside their roles.",
)
TOOLHUB_OIDC_ISSUER = VARIABLES.url(
    "TOOLHUB_OIDC_ISSUER",
    schemes=_HTTP,
    roles=(WEB,),
    example="https://idp.example.org/realms/main",
    about="Sign-in at an OpenID Connect provider, for people who were invited with an address that it has verified. Its "
    "redirect address is <public URL>/account/sso/oidc/callback.",
)
TOOLHUB_OIDC_CLIENT_ID = _text(
    "TOOLHUB_OIDC_CLIENT_ID", roles=(WEB,), example="toolhub", about="What the provider calls this hub."
)
TOOLHUB_OIDC_CLIENT_SECRET = _secret(
    "TOOLHUB_OIDC_CLIENT_SECRET", roles=(WEB,), about="What this hub proves itself with to the provider."
)
TOOLHUB_OIDC_NAME = _text(
    "TOOLHUB_OIDC_NAME", "Single sign-on", roles=(WEB,), about="What the button to sign in there says."
)

_group("Agents' tokens, and whom the hub asks by itself")
TOOLHUB_TOKEN_LIFETIME_S = _number(
    "TOOLHUB_TOKEN_LIFETIME_S",
    3600,
    least=1,
    unit="seconds",
    roles=(WEB,),
    about="The longest life of an identity provider's token.",
)
TOOLHUB_CLIENT_REGISTRATION = VARIABLES.flag(
    "TOOLHUB_CLIENT_REGISTRATION",
    default=True,
    roles=(WEB,),
    about="Whether MCP clients that have no document of their own (Cursor, for one) may make themselves known to the hub. No right "
    "follows from it. Without, such clients cannot connect by the hub's address alone.",
)
TOOLHUB_CLIENT_DOCUMENTS = VARIABLES.flag(
    "TOOLHUB_CLIENT_DOCUMENTS",
    default=True,
    roles=(WEB,),
    about="Whether the hub reads the documents by which MCP clients name themselves (Claude, ChatGPT, VS Code). Set it to 0 where the "
    "hub has no way out to the internet: the metadata then do not offer it, and such clients register instead.",
)
TOOLHUB_CLIENT_DOCUMENT_NETWORKS = VARIABLES.networks(
    "TOOLHUB_CLIENT_DOCUMENT_NETWORKS",
    roles=(WEB,),
    example="10.20.0.0/16",
    about="Private networks in which the hub looks for such documents, beside public addresses: for programs of your own. Anybody "
    "who is signed in can make it ask an https address there.",
)
TOOLHUB_CONNECTION_TOKEN_S = _number(
    "TOOLHUB_CONNECTION_TOKEN_S",
    3600,
    least=600,
    most=86400,
    unit="seconds",
    roles=(WEB,),
    about="How long an access token of a connected program lasts before it must fetch a newer one. Ending the "
    "connection ends it at once.",
)
TOOLHUB_CONNECTION_IDLE_DAYS = _number(
    "TOOLHUB_CONNECTION_IDLE_DAYS",
    30,
    least=1,
    unit="days",
    roles=(WEB,),
    about="A connected program that fetches no newer token for so long must ask a person again.",
)
TOOLHUB_CONNECTION_DAYS = _number(
    "TOOLHUB_CONNECTION_DAYS",
    90,
    least=1,
    unit="days",
    roles=(WEB,),
    about="The longest that a person may let a program act as an agent.",
)
TOOLHUB_OUTBOUND_NETWORKS = VARIABLES.networks(
    "TOOLHUB_OUTBOUND_NETWORKS",
    example="10.20.0.0/16,192.168.7.9/32",
    about="Identity providers and webhooks are asked at public addresses over https only, and in these networks.",
)
TOOLHUB_SERVER_ACCOUNT_NETWORKS = VARIABLES.networks(
    "TOOLHUB_SERVER_ACCOUNT_NETWORKS",
    example="10.20.0.0/16",
    about="Private networks in which the hub asks who gives tokens for a server elsewhere, and asks for them, beside public "
    "addresses: where persons connect accounts at servers of your own. Such a server can make the hub ask any address there.",
)
TOOLHUB_LOCAL_MODELS = VARIABLES.path(
    "TOOLHUB_LOCAL_MODELS",
    TOOLHUB_DATA_DIR / "models",
    shown="models in TOOLHUB_DATA_DIR",
    roles=(WEB,),
    example="/srv/models",
    about="Models of your own for providers of the kind local: NAME.gguf there is the model NAME.",
)

_group("Mail, for notifications and invitations")
TOOLHUB_EMAIL_URL = VARIABLES.value(
    "TOOLHUB_EMAIL_URL",
    "",
    read_mail_address,
    "smtp://user:password@host:port, smtps://… or smtp+plain://…",
    secret=True,
    roles=(WEB, WORKER, UPKEEP),
    example="smtp://user:PASSWORD@mail.example.org:587",
    about="smtp:// begins with STARTTLS, smtps:// is TLS from the start, smtp+plain:// is neither (a relay on this host).",
)
TOOLHUB_EMAIL_FROM = _text(
    "TOOLHUB_EMAIL_FROM",
    "toolhub@localhost",
    roles=(WEB, WORKER, UPKEEP),
    example="toolhub@example.org",
    about="The sender of the mail.",
)
