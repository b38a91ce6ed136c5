"""Remotes: whether a manifest that lets a server somewhere else answer names one address, and reaches nothing else.

The gate speaks to it with a tenant's credentials, for one tool of its list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unitools.checks.findings import declare_rule
from unitools.checks.operations import find_server_problem, holds_method, read_server
from unitools.mcp_argument_headers import MarkUnfit, find_argument_headers
from unitools.mcp_http import MODERN
from unitools.openapi.argument_values import is_token
from unitools.openapi.requests import is_reserved_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

AT = ("implementation", "remote")
OUTSIDE = declare_rule(
    "remote.outside_sandbox",
    "What speaks to a server somewhere else runs in the sandbox, in the image python, without packages.",
    "Leave requires_sandbox, implementation.image and dependencies out.",
)
ADDRESS = declare_rule(
    "remote.url",
    "The server is one host by its name, with a path that can be read in one way only.",
    "Name its address, for example https://mcp.example.com/mcp, without `.`, `..` or a number for a host.",
)
NOT_ASKED = declare_rule(
    "remote.host_missing",
    "The server is among the hosts that the tool may reach, by https, with POST; with DELETE too where sessions are ended.",
    "Name it under capabilities.net.",
)
BEYOND = declare_rule(
    "remote.beyond",
    "A tool of a server somewhere else reaches that server and nothing else.",
    "Leave other capabilities out.",
)
CREDENTIALS = declare_rule(
    "remote.credentials",
    "Each secret is a credential that the gate adds, each in a header of its own.",
    "Name the secret under secrets and under implementation.remote.credentials.",
)
MIXED = declare_rule(
    "remote.mixed_credentials",
    "A version asks its server either with the tenant's credentials or as the person whom a call is for, never both.",
    "Leave implementation.remote.account out, or the credentials and their secrets; bring the tool twice where both are needed.",
)
OTHER_ORIGIN = declare_rule(
    "remote.other_origin",
    "The address that is called is the one that the list was read from.",
    "Bring the tool from the address that it is to be called at.",
)
ARGUMENT_HEADERS = declare_rule(
    "remote.argument_headers",
    "The arguments that are said in headers too are texts, whole numbers, or yes and no, each in a header of its own.",
    "Leave the tool out, or ask the server's author to mark them as MCP has it (x-mcp-header).",
)
KEYED = declare_rule(
    "remote.keyed",
    "No server of MCP says that it takes a key for a repeated call.",
    "Set idempotency to none.",
)


def check_remote(manifest: Manifest) -> Iterator[ManifestFinding]:
    remote = manifest.remote
    if remote is None:
        return
    if manifest.document.get("requires_sandbox") is False:
        yield OUTSIDE.at(("requires_sandbox",), "A server somewhere else answers, but no sandbox is asked for.")
    if manifest.image != "python":
        yield OUTSIDE.at(("implementation", "image"), f"The image would be {manifest.image}.")
    for name in ("dependencies", "dependency_lock", "dependency_constraints"):
        if manifest.document.get(name):
            yield OUTSIDE.at((name,), "A tool of a server somewhere else imports nothing.")
    if manifest.idempotency == "keyed":
        yield KEYED.at(("idempotency",), "The key of a call would reach nobody.")
    if manifest.origin.get("url", remote["url"]) != remote["url"]:
        yield OTHER_ORIGIN.at((*AT, "url"), "origin names another address.")
    yield from _check_argument_headers(manifest, remote)
    yield from _check_address(manifest, remote)
    yield from _check_credentials(manifest, remote)


def _check_argument_headers(manifest: Manifest, remote: dict[str, Any]) -> Iterator[ManifestFinding]:
    if remote["revision"] < MODERN:
        return
    try:
        find_argument_headers(manifest.input_schema)
    except MarkUnfit as error:
        yield ARGUMENT_HEADERS.at(("input_schema",), str(error))


def _check_address(manifest: Manifest, remote: dict[str, Any]) -> Iterator[ManifestFinding]:
    problem = find_server_problem(remote["url"])
    if problem or "//" in urlsplit(remote["url"]).path:
        yield ADDRESS.at((*AT, "url"), problem or "A part of its path is empty.")
        return
    host, port = read_server(remote["url"])
    net = manifest.capabilities.get("net", [])
    for method in ("POST",) if remote["revision"] == MODERN else ("POST", "DELETE"):
        if not any(holds_method(each, host, port, method) for each in net):
            yield NOT_ASKED.at(("capabilities", "net"), f"{method} to {host}, port {port}, is not among them.")
    for place, each in enumerate(net):
        if each["host"] != host:
            yield BEYOND.at(("capabilities", "net", place, "host"), f"The tool never speaks to {each['host']}.")
    for name in ("fs", "cidr", "browser", "proc"):
        if manifest.capabilities.get(name):
            yield BEYOND.at(("capabilities", name), f"No server somewhere else uses {name}.")


def is_credential_header(name: str) -> bool:
    """Whether a credential can be sent in it: not in what HTTP, the gate and MCP say themselves."""
    small = name.lower()
    is_ours = small != "authorization" and is_reserved_header(small)
    return is_token(name) and not is_ours and not small.startswith("mcp-") and small not in ("accept", "content-type")


def _check_credentials(manifest: Manifest, remote: dict[str, Any]) -> Iterator[ManifestFinding]:
    if manifest.account is not None and (remote["credentials"] or manifest.secrets):
        where = (*AT, "credentials") if remote["credentials"] else ("secrets",)
        yield MIXED.at(where, "A person's own account and a secret of the tenant are asked for at once.")
    secrets = {each["name"] for each in manifest.secrets}
    taken: set[str] = set()
    used: set[str] = set()
    for place, each in enumerate(remote["credentials"]):
        at, name = (*AT, "credentials", place), each["name"].lower()
        if each["secret"] not in secrets:
            yield CREDENTIALS.at((*at, "secret"), f"The manifest declares no secret {each['secret'][:64]}.")
        if name in taken:
            yield CREDENTIALS.at((*at, "name"), f"{each['name'][:60]} is said twice.")
        if not is_credential_header(each["name"]):
            yield CREDENTIALS.at((*at, "name"), f"{each['name'][:60]} is no header of a credential.")
        taken.add(name)
        used.add(each["secret"])
    for place, secret in enumerate(manifest.secrets):
        if secret["name"] not in used:
            yield CREDENTIALS.at(("secrets", place, "name"), f"No credential uses {secret['name']}.")
