"""Operations: whether the request that a call of a service becomes is written in one way only, and reaches what is declared.

The gate sends it with a tenant's credentials. So nothing in it may be an agent's that is the gate's: the host, what frames the
request, or who is speaking.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from unitools.checks.findings import declare_rule
from unitools.openapi.argument_values import fold_name, is_token
from unitools.openapi.multipart import MULTIPART
from unitools.openapi.request_bodies import FORM as WWW_FORM
from unitools.openapi.request_bodies import is_json
from unitools.openapi.requests import PLACEHOLDER, STYLES, is_reserved_header, leaves_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

AT = ("implementation", "operation")
OUTSIDE = declare_rule(
    "operation.outside_sandbox",
    "An operation of a service runs in the sandbox, in the image python, without packages.",
    "Leave requires_sandbox, implementation.image and dependencies out.",
)
SERVER = declare_rule(
    "operation.server",
    "The server is one host by its name, with a path that can be read in one way only.",
    "Name the service's host, for example https://api.example.com/v1, without `.`, `..` or an address.",
)
NOT_ASKED = declare_rule(
    "operation.host_missing",
    "The server is among the hosts that the tool may reach, by https, with the operation's method.",
    "Name it under capabilities.net.",
)
BEYOND = declare_rule(
    "operation.beyond",
    "An operation reaches its server and nothing else.",
    "Leave other capabilities out.",
)
PATH = declare_rule(
    "operation.path",
    "Each {name} of the path is one argument of the place path, once, and the path leads nowhere else.",
    "Correct the path or the arguments; write no `.`, `..` or empty part.",
)
ARGUMENTS = declare_rule(
    "operation.arguments",
    "Every argument is a property of input_schema and every property is one argument, each with a place of its own.",
    "Name each under both, once.",
)
OPEN = declare_rule(
    "operation.open_input",
    "The input of an operation has no unknown names: nothing says where they would go.",
    'Set "additionalProperties": false.',
)
REQUIRED = declare_rule(
    "operation.path_optional",
    "An argument of the path is required: without it there is no path.",
    "Name it under required of input_schema.",
)
RESERVED = declare_rule(
    "operation.reserved_header",
    "No argument is a header that the gate, the transport or a credential says.",
    "Remove the argument; a token is a credential, under implementation.operation.credentials.",
)
FORM = declare_rule(
    "operation.form",
    "Names and styles fit their places.",
    "See the reference: each place has its styles, and a header or a cookie has a plain name.",
)
BODY = declare_rule(
    "operation.body",
    "A body is either the arguments of the place body or one argument that is the whole of it, and GET and HEAD have none.",
    "Name the body, or change the arguments.",
)
FILES = declare_rule(
    "operation.files",
    "A file is a part of a multipart body, or the whole of a body that is neither JSON nor a form; its argument is an id, or several.",
    "Take `file` away, or send it as multipart/form-data or as the whole body.",
)
CREDENTIALS = declare_rule(
    "operation.credentials",
    "Each secret is a credential that the gate adds, each in a place that no argument has.",
    "Name the secret under secrets and under implementation.operation.credentials.",
)
MIXED = declare_rule(
    "operation.mixed_credentials",
    "A version asks its service either with the tenant's credentials or as the person whom a call is for, never both.",
    "Leave implementation.operation.account out, or the credentials and their secrets; bring it twice where both are needed.",
)
IDEMPOTENCY = declare_rule(
    "operation.idempotency",
    "A call of a service is keyed where the header is named in which the service takes the key.",
    "Name idempotency_header, or set idempotency to none.",
)
RESULT = declare_rule(
    "operation.result",
    "The result of an operation is an object with the service's status and its body.",
    'Describe {"status": …, "body": …} under output_schema and require status.',
)
_ODD_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")


def check_operation(manifest: Manifest) -> Iterator[ManifestFinding]:
    operation = manifest.operation
    if operation is None:
        return
    if manifest.document.get("requires_sandbox") is False:
        yield OUTSIDE.at(("requires_sandbox",), "A service answers, but no sandbox is asked for.")
    if manifest.image != "python":
        yield OUTSIDE.at(("implementation", "image"), f"The image would be {manifest.image}.")
    for name in ("dependencies", "dependency_lock", "dependency_constraints"):
        if manifest.document.get(name):
            yield OUTSIDE.at((name,), "An operation imports nothing.")
    yield from _check_server(manifest, operation)
    yield from _check_path(manifest, operation)
    yield from _check_arguments(manifest, operation)
    yield from _check_body(manifest, operation)
    yield from _check_files(manifest, operation)
    yield from _check_credentials(manifest, operation)
    if manifest.account is not None and (operation["credentials"] or manifest.secrets):
        where = (*AT, "credentials") if operation["credentials"] else ("secrets",)
        yield MIXED.at(where, "A person's own account and a secret of the tenant are asked for at once.")
    if (manifest.idempotency == "keyed") != ("idempotency_header" in operation):
        yield IDEMPOTENCY.at(("idempotency",), "idempotency and implementation.operation.idempotency_header disagree.")
    properties = manifest.output_schema.get("properties", {})
    if manifest.output_schema.get("type") != "object" or "status" not in properties or "body" not in properties:
        yield RESULT.at(("output_schema",), "The output schema does not describe status and body.")


def read_server(server: str) -> tuple[str, int]:
    """Host and port. The manifest's schema has looked at its form."""
    parts = urlsplit(server)
    return parts.hostname or "", parts.port or 443


def find_server_problem(server: str) -> str:
    """Why no request goes to such a server though its form is right; empty: it may."""
    try:
        host, port = read_server(server)
    except ValueError:
        return "The port is no port."
    if not 0 < port < 65_536:
        return "The port is no port."
    if ".." in host or any(each.startswith("-") or each.endswith("-") for each in host.split(".")):
        return f"{host} is no host name."
    if _ODD_NUMBER.fullmatch(host.rpartition(".")[2]) or _is_address(host):
        return f"{host} is an address, or is read as one."
    if any(map(leaves_path, urlsplit(server).path.split("/"))):
        return "Its path leads out of itself."
    return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _check_server(manifest: Manifest, operation: dict[str, Any]) -> Iterator[ManifestFinding]:
    if problem := find_server_problem(operation["server"]):
        yield SERVER.at((*AT, "server"), problem)
        return
    host, port = read_server(operation["server"])
    net = manifest.capabilities.get("net", [])
    if not any(holds_method(each, host, port, operation["method"]) for each in net):
        yield NOT_ASKED.at(("capabilities", "net"), f"{operation['method']} to {host}, port {port}, is not among them.")
    for place, each in enumerate(net):
        if each["host"] != host:
            yield BEYOND.at(("capabilities", "net", place, "host"), f"The operation never speaks to {each['host']}.")
    for name in ("fs", "cidr", "browser", "proc"):
        if manifest.capabilities.get(name):
            yield BEYOND.at(("capabilities", name), f"No operation uses {name}.")


def holds_method(entry: dict[str, Any], host: str, port: int, method: str) -> bool:
    ports = entry.get("ports", [str(entry.get("port", 443))])
    reaches = any(int(low) <= port <= int(high or low) for low, _, high in (each.partition("-") for each in ports))
    is_https = entry.get("scheme", "https") == "https"
    return entry["host"] == host and reaches and is_https and method in entry.get("methods", [method])


def _check_path(manifest: Manifest, operation: dict[str, Any]) -> Iterator[ManifestFinding]:
    path = operation["path"]
    named = PLACEHOLDER.findall(path)
    arguments = [(place, each) for place, each in enumerate(operation["arguments"]) if each["in"] == "path"]
    if len(set(named)) < len(named) or re.search(r"[{}]", PLACEHOLDER.sub("", path)):
        yield PATH.at((*AT, "path"), "A name stands twice in the path, or a brace stands alone.")
    if any(map(leaves_path, path.split("/"))) or "//" in path:
        yield PATH.at((*AT, "path"), "A part of the path is empty, `.` or `..`.")
    for name in named:
        if name not in [each["name"] for _, each in arguments]:
            yield PATH.at((*AT, "path"), f"No argument is {{{name[:60]}}}.")
    required = manifest.input_schema.get("required", [])
    for place, each in arguments:
        if each["name"] not in named:
            yield PATH.at((*AT, "arguments", place, "name"), f"The path has no {{{each['name'][:60]}}}.")
        if each["argument"] not in required:
            yield REQUIRED.at(
                ("input_schema", "required"), f"The path needs {each['argument']}, which may be left out."
            )


def _check_arguments(manifest: Manifest, operation: dict[str, Any]) -> Iterator[ManifestFinding]:
    properties = manifest.input_schema.get("properties", {})
    whole = operation.get("body", {}).get("argument")
    names: set[str] = {whole} if whole is not None else set()
    places: set[tuple[str, str, str]] = set()
    if manifest.input_schema.get("additionalProperties") is not False:
        yield OPEN.at(("input_schema", "additionalProperties"), "The input takes names that nothing puts anywhere.")
    for place, each in enumerate(operation["arguments"]):
        at = (*AT, "arguments", place)
        header = each.get("header", "").lower()
        where = (each["in"], each["name"].lower() if each["in"] == "header" else each["name"], header)
        if each["argument"] not in properties:
            yield ARGUMENTS.at((*at, "argument"), f"input_schema has no property {each['argument']}.")
        if each["argument"] in names or where in places:
            yield ARGUMENTS.at((*at, "argument"), f"{each['argument']} or its place stands twice.")
        names.add(each["argument"])
        places.add(where)
        if each["in"] == "header" and is_reserved_header(each["name"]):
            yield RESERVED.at((*at, "name"), f"{each['name'][:60]} is not an agent's to say.")
        if each["in"] in ("header", "cookie") and not is_token(each["name"]):
            yield FORM.at((*at, "name"), f"{each['name'][:60]} is no name of a {each['in']}.")
        if header and (is_reserved_header(header) or header.startswith("content-")):
            yield RESERVED.at((*at, "header"), f"{each['header'][:60]} of a part is not an agent's to say.")
        if "style" in each and each["style"] not in STYLES[each["in"]]:
            yield FORM.at((*at, "style"), f"{each['style']} is no style of {each['in']}.")
    for name in properties:
        if name not in names:
            yield ARGUMENTS.at(("input_schema", "properties", name), f"Nothing says where {name[:60]} goes.")
    if whole is not None and whole not in properties:
        yield ARGUMENTS.at((*AT, "body", "argument"), f"input_schema has no property {whole}.")


def _check_body(manifest: Manifest, operation: dict[str, Any]) -> Iterator[ManifestFinding]:
    del manifest
    body = operation.get("body")
    parts = [place for place, each in enumerate(operation["arguments"]) if each["in"] == "body"]
    if body is None and parts:
        yield BODY.at((*AT, "arguments", parts[0], "in"), "The request has no body.")
    if body is not None and parts and "argument" in body:
        yield BODY.at((*AT, "body", "argument"), "The body is one argument, and others are of the place body.")
    if body is not None and operation["method"] in ("GET", "HEAD"):
        yield BODY.at((*AT, "body"), f"{operation['method']} has a body.")


def _check_files(manifest: Manifest, operation: dict[str, Any]) -> Iterator[ManifestFinding]:
    body = operation.get("body", {})
    media, properties = body.get("media_type"), manifest.input_schema.get("properties", {})
    parts = {each["name"] for each in operation["arguments"] if each["in"] == "body" and "header" not in each}
    for place, each in enumerate(operation["arguments"]):
        at = (*AT, "arguments", place)
        if (each.get("file") or "media_types" in each) and (each["in"] != "body" or media != MULTIPART):
            yield FILES.at((*at, "argument"), f"{each['argument'][:60]} is no part of a multipart body.")
        if each.get("file") and not _is_id(properties.get(each["argument"]), or_list=True):
            yield FILES.at(("input_schema", "properties", each["argument"]), "A file is named by a text, its id.")
        if "header" in each and (each.get("file") or each["name"] not in parts or media != MULTIPART):
            yield FILES.at((*at, "header"), f"{each['name'][:60]} is no part that has a header.")
    if body.get("required") and (media != MULTIPART or "argument" in body):
        yield FILES.at((*AT, "body", "required"), "Only a form of parts may have none.")
    is_written = media is not None and (is_json(media) or media in (WWW_FORM, MULTIPART))
    if body.get("file"):
        if is_written or "argument" not in body:
            yield FILES.at((*AT, "body"), f"No file is sent as {media}, or no argument names it.")
        elif not _is_id(properties.get(body["argument"])):
            yield FILES.at(("input_schema", "properties", body["argument"]), "A file is named by a text, its id.")
    elif media is not None and not is_written and ("*" in media or "argument" not in body):
        yield BODY.at((*AT, "body"), f"What is sent as {media} is one argument, a file or a text of one kind.")
    if body.get("media_types") and not body.get("file"):
        yield FILES.at((*AT, "body", "media_types"), "The body is no file.")


def _is_id(schema: Any, *, or_list: bool = False) -> bool:
    """Whether only a text is taken, or a list of texts."""
    if not isinstance(schema, dict):
        return False
    return schema.get("type") == "string" or (or_list and schema.get("type") == "array" and _is_id(schema.get("items")))


def _check_credentials(manifest: Manifest, operation: dict[str, Any]) -> Iterator[ManifestFinding]:
    secrets = {each["name"] for each in manifest.secrets}
    taken = {(each["in"], _fold(each)) for each in operation["arguments"]}
    if "idempotency_header" in operation:
        header = operation["idempotency_header"].lower()
        if is_reserved_header(header) or ("header", header) in taken:
            yield RESERVED.at((*AT, "idempotency_header"), f"{header} is not the key's to say.")
        taken.add(("header", header))
    used: set[str] = set()
    for place, each in enumerate(operation["credentials"]):
        at = (*AT, "credentials", place)
        name = _fold(each)
        if each["secret"] not in secrets:
            yield CREDENTIALS.at((*at, "secret"), f"The manifest declares no secret {each['secret'][:64]}.")
        if (each["in"], name) in taken:
            yield CREDENTIALS.at((*at, "name"), f"Something else is said as {each['name'][:60]}.")
        if each["in"] in ("header", "cookie") and not is_token(each["name"]):
            yield CREDENTIALS.at((*at, "name"), f"{each['name'][:60]} is no name of a {each['in']}.")
        if each["in"] == "header" and name != "authorization" and is_reserved_header(name):
            yield CREDENTIALS.at((*at, "name"), f"{each['name'][:60]} is the gate's own.")
        if each["in"] == "body" and not _has_room(operation):
            yield CREDENTIALS.at((*at, "in"), "The body is no JSON object and no form, so nothing can be added to it.")
        if each["scheme"] != "plain" and each["in"] != "header":
            yield CREDENTIALS.at((*at, "scheme"), f"{each['scheme']} is said in a header.")
        taken.add((each["in"], name))
        used.add(each["secret"])
    for place, secret in enumerate(manifest.secrets):
        if secret["name"] not in used:
            yield CREDENTIALS.at(("secrets", place, "name"), f"No credential uses {secret['name']}.")


def _has_room(operation: dict[str, Any]) -> bool:
    """Whether the gate can say a property of the body."""
    body = operation.get("body", {})
    media = body.get("media_type", "")
    return "argument" not in body and (is_json(media) or media == WWW_FORM)


def _fold(said: dict[str, Any]) -> str:
    """One name for all that a service may take for the same."""
    match said["in"]:
        case "query":
            return fold_name(said["name"])
        case "header":
            return str(said["name"]).lower()
        case _:
            return str(said["name"])
