"""Import sources: where tools come from, as a person names it and as the makers of drafts take it."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kernel.problems import SchemaInvalid
from registry.imports.models import ImportKind
from unitools.brought_npm import NpmSource, find_locked_version, read_asked_package
from unitools.brought_remotes import RemoteSource
from unitools.brought_tools import CannotBring, ServerReach, Source
from unitools.checks.credentials import is_secret_variable
from unitools.checks.remotes import is_credential_header
from unitools.npm_locks import normalize_npm_lines
from unitools.npm_names import PREFIX, is_of_npm
from unitools.openapi.account_security import AccountChoice
from unitools.openapi.operations import Choices
from unitools.openapi.security import CredentialChoice
from unitools.publications import check_group
from unitools.server_secrets import build_secret_entry, fits_secret
from unitools.service_credentials import BEARER, PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from registry.imports.models import Import
    from unitools.brought_tools import BroughtSource

MAX_LINES = 20
MAX_LINE_CHARS = 500
_SECRET = re.compile(r"([A-Z][A-Z0-9_]{0,63})(?:=(.+))?")
_ACCOUNT = re.compile(r"account(?:=(.+))?")  # the service is asked as the person whom a call is for
_REMOTE_SECRET = re.compile(
    r"([A-Z][A-Z0-9_]{0,63})(?:=(?:(bearer|basic)|header:([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100})))?"
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,60}")
_CONSTRAINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]*\])?\s*(?:[<>=!~]=?|===)[^\s;@]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")


def read_group(text: str) -> str:
    try:
        return check_group(text.strip())
    except ValueError as error:
        raise SchemaInvalid.at("/group", str(error)) from error


def _check_lines(pointer: str, lines: list[str]) -> None:
    if len(lines) > MAX_LINES or any(len(each) > MAX_LINE_CHARS for each in lines):
        raise SchemaInvalid.at(pointer, f"Give at most {MAX_LINES} lines of at most {MAX_LINE_CHARS} characters.")


def read_document_choices(*, servers: list[str], secrets: list[str], idempotency_header: str) -> dict[str, Any]:
    """What a person says beside a document, as it is kept."""
    _check_lines("/servers", servers)
    _check_lines("/secrets", secrets)
    if sum(_ACCOUNT.fullmatch(each) is not None for each in secrets) and len(secrets) > 1:
        raise SchemaInvalid.at(
            "/secrets", "A service is asked as a person or with secrets of the tenant: account stands alone."
        )
    if not all(_SECRET.fullmatch(each) or _ACCOUNT.fullmatch(each) for each in secrets):
        # What was typed is not said again: it may be the secret itself.
        raise SchemaInvalid.at(
            "/secrets",
            "A line is NAME or NAME=HOW, with NAME in capitals, or account. The value of a secret never stands here.",
        )
    if idempotency_header and not _HEADER.fullmatch(idempotency_header):
        raise SchemaInvalid.at("/idempotency_header", "This is no name of a header.")
    return {"servers": servers, "secrets": secrets, "idempotency_header": idempotency_header}


def build_choices(source: dict[str, Any], group: str) -> Choices:
    said = source["choices"]
    secrets, account = [], None
    for text in said["secrets"]:
        if asked := _ACCOUNT.fullmatch(text):
            account = AccountChoice(asked[1] or "")
            continue
        found = _SECRET.fullmatch(text)
        assert found, "it was looked at when it was kept"
        secrets.append(CredentialChoice(found[1], found[2] or ""))
    prefix = group.rpartition(".")[2].upper()[:30]
    return Choices(
        tuple(said["servers"]),
        tuple(secrets),
        said["idempotency_header"],
        prefix if prefix[0].isalpha() else f"S_{prefix}",
        account,
    )


def read_remote_credentials(secrets: list[str]) -> list[dict[str, str]]:
    """Entries of ``implementation.remote.credentials``."""
    _check_lines("/secrets", secrets)
    found = []
    for text in secrets:
        asked = _REMOTE_SECRET.fullmatch(text)
        if asked is None:
            raise SchemaInvalid.at(
                "/secrets",
                "A line is NAME, NAME=bearer, NAME=basic or NAME=header:X-Key, with NAME in capitals. The value never stands here.",
            )
        name, scheme, header = asked[1], asked[2] or BEARER, asked[3]
        if header and not is_credential_header(header):
            raise SchemaInvalid.at(
                "/secret", "A credential is sent in no header that HTTP, the hub or MCP writes itself."
            )
        way = {"name": header, "scheme": PLAIN} if header else {"name": "Authorization", "scheme": scheme}
        found.append({"secret": name, "in": "header"} | way)
    return found


def read_package_source(
    *,
    package: str,
    version: str,
    constraints: list[str],
    script: str,
    arguments: list[str],
    environment: list[str],
    secrets: list[str],
    lock: list[str],
    reach: ServerReach,
) -> dict[str, Any]:
    """Where a server comes from that a package brings, as it is kept. ``secrets``: what it finds in its environment by these names;
    ``lock``: the lines of a package of npm."""
    if is_of_npm(package):
        package, version = _read_npm_package(package, version, constraints, script, lock)
    elif not _PACKAGE.fullmatch(package):
        raise SchemaInvalid.at(
            "/package",
            "Give the name of a package of the index, such as mcp-server-time, or npm:NAME for one of npm.",
        )
    elif lock:
        raise SchemaInvalid.at(
            "/lock", "A lock is given for a package of npm; that of other packages is found by the hub."
        )
    elif version and not _VERSION.fullmatch(version):
        raise SchemaInvalid.at("/version", "Give one version, such as 2026.10.19, or leave it empty for the newest.")
    for pointer, lines in (
        ("/constraints", constraints),
        ("/arguments", arguments),
        ("/environment", environment),
        ("/secrets", secrets),
        ("/hosts", list(reach.hosts)),
        ("/programs", list(reach.programs)),
    ):
        _check_lines(pointer, lines)
    if not all(_CONSTRAINT.fullmatch(each) for each in constraints):
        raise SchemaInvalid.at("/constraints", "A line is a package and its versions, such as mcp<2.")
    if not all(_HOST.fullmatch(each) for each in reach.hosts):
        raise SchemaInvalid.at("/hosts", "A line is the name of a host, such as api.example.org.")
    if not all(fits_secret(each) for each in secrets):
        raise SchemaInvalid.at("/secrets", "A line is a name in capitals, such as API_KEY. A value never stands here.")
    variables = [_read_variable(each) for each in environment]
    if twice := {each["name"] for each in variables}.intersection(secrets):
        raise SchemaInvalid.at("/secrets", f"{min(twice)} has a value in the environment: name it in one of the two.")
    variables += [build_secret_entry(each) for each in dict.fromkeys(secrets)]
    start: dict[str, Any] = {}
    if script:
        start["script"] = script
    if arguments:
        start["arguments"] = arguments
    if variables:
        start["environment"] = variables
    said: dict[str, Any] = {"package": package, "version": version, "constraints": constraints, "start": start}
    said["hosts"] = list(reach.hosts)
    return said | {name: value for name, value in asdict(reach).items() if value} | ({"lock": lock} if lock else {})


def _read_variable(text: str) -> dict[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not _VARIABLE.fullmatch(name):
        raise SchemaInvalid.at(
            "/environment", "A line is NAME=VALUE. Secrets are named alone, and their values never stand here."
        )
    if is_secret_variable(name, value):
        raise SchemaInvalid.at(
            "/environment",
            f"{name[:64]} looks like a secret, and its value would stand in the manifest for all to read: name it under secrets, "
            "without a value. If it is none, make it a property of config_schema in the draft.",
        )
    return {"name": name, "value": value}


def _read_npm_package(
    package: str, version: str, constraints: list[str], script: str, lock: list[str]
) -> tuple[str, str]:
    """Its name with ``npm:`` and its version, which the lock says."""
    try:
        name, asked = read_asked_package(f"{package}@{version}" if version else package)
    except ValueError as error:
        raise SchemaInvalid.at("/package", str(error)) from error
    if constraints:
        raise SchemaInvalid.at("/constraints", "A lock of npm says all versions; nothing is left to constrain.")
    if not lock:
        raise SchemaInvalid.at(
            "/lock", "A hub does not run npm: give the package-lock.json that your npm writes for the package."
        )
    if not script:
        raise SchemaInvalid.at("/script", f"Say which program of {name} is the server.")
    try:
        normalize_npm_lines(lock)
        found = find_locked_version(lock, name)
    except (ValueError, CannotBring) as error:
        raise SchemaInvalid.at("/lock", str(error)) from error
    if asked and found != asked:
        raise SchemaInvalid.at("/version", f"The lock holds {name} {found}, and {asked} is asked for.")
    return f"{PREFIX}{name}", found


def read_reach(
    *,
    hosts: Sequence[str] = (),
    keeps: str = "",
    programs: Sequence[str] = (),
    trees: Sequence[str] = (),
    browser: bool = False,
) -> ServerReach:
    """What a server is given beside its own code."""
    try:
        return ServerReach(tuple(hosts), keeps, tuple(programs), trees=tuple(trees), browser=browser)
    except CannotBring as error:
        raise SchemaInvalid.at("/programs" if programs and not trees else "/trees", str(error)) from error


def build_reach(source: dict[str, Any]) -> ServerReach:
    """As it was kept."""
    return ServerReach(
        hosts=tuple(source.get("hosts", ())),
        keeps=source.get("keeps", ""),
        programs=tuple(source.get("programs", ())),
        image=source.get("image", ""),
        trees=tuple(source.get("trees", ())),
        browser=source.get("browser", False),
    )


def build_brought_source(row: Import, protocol: str) -> BroughtSource:
    source = row.source
    if row.kind == ImportKind.REMOTE:
        return RemoteSource(source["url"], row.group, protocol, tuple(source["credentials"]) or None)
    start = source["found"]["start"]
    if is_of_npm(source["package"]):
        return NpmSource(
            source["package"].removeprefix(PREFIX),
            source["found"]["version"],
            row.group,
            start,
            tuple(source["lock"]),
            said=source["start"],
            reach=build_reach(source),
            is_whole=True,
        )
    return Source(
        source["package"],
        source["found"]["version"],
        row.group,
        start,
        said=source["start"],
        constraints=tuple(source["constraints"]),
        reach=build_reach(source),
        is_whole=True,
    )
