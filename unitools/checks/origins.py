"""Origins: whether a manifest that lets others answer says whom it was brought from, and gives a server nothing undeclared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unitools.brought_objects import MADE_FILE, SOURCE_FOLDER
from unitools.checks.credentials import is_secret_variable
from unitools.checks.findings import ManifestFinding, declare_rule, declare_warning
from unitools.dependency_locks import normalize_name
from unitools.mcp_listings import LISTING_FILE, Listing, compute_json_digest, read_entry_schema
from unitools.packages import compute_files_digest
from unitools.source_scans import is_secret_name
from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unitools.manifest import Manifest

MISSING = declare_rule(
    "origin.missing",
    "What a server of others or a service answers says where it was brought from.",
    "Let `unitools bring` write the manifest, or add origin: a package for mcp_stdio, a url for mcp_remote, else a document.",
)
ALONE = declare_rule(
    "origin.without_server",
    "An origin belongs to a tool that a server of others, a service or an object that a function makes answers.",
    "Remove origin.",
)
NOT_NEEDED = declare_rule(
    "origin.not_a_dependency",
    "The package that brings the server or the object is one of the dependencies, in the same version.",
    "Name it under dependencies as package==version, a package of npm as npm:name@version.",
)
OUTSIDE = declare_rule(
    "origin.outside_sandbox",
    "A server or an object of others runs in the sandbox.",
    "Set requires_sandbox to true, or leave it out.",
)
IMAGE = declare_rule(
    "origin.image",
    "A server of a Python package runs in the image python, one of npm in node or with a browser, one that starts programs in theirs.",
    "Leave implementation.image out; or name the programs under capabilities.proc, and the image that has them.",
)
PROGRAM = declare_rule(
    "origin.npm_script",
    "A server of a package of npm is started as a program that its `bin` names.",
    "Name it under implementation.server.script.",
)
UNDECLARED = declare_rule(
    "origin.environment",
    "The server's environment names what the manifest declares, and each name once.",
    "Add the secret under secrets or the property to config_schema, or correct the name.",
)
RESERVED = declare_rule(
    "origin.environment_reserved",
    "Names that belong to the sandbox or to the interpreter are not the author's to set.",
    "Choose another way to tell the server, for example an argument.",
)
SECRET = declare_rule(
    "origin.environment_secret",
    "No value in the server's environment is a secret: manifests are shown, signed and kept in clear.",
    'Name it under secrets, and give {"name": …, "secret": …} in place of the value; each tenant sets its own. If it is none, give '
    '{"name": …, "config": …}, with the value as the default of a property of config_schema.',
)
SECRET_NAME = declare_warning(
    "origin.environment_secret_name",
    "A variable of the server's environment that is called like a secret is one, or its value opens nothing.",
    'If each tenant has its own, name it under secrets, and give {"name": …, "secret": …} in place of the value.',
)
KEYED = declare_rule(
    "origin.keyed",
    "No server of MCP says that it takes a key for a repeated call.",
    "Set idempotency to none.",
)
_RESERVED = re.compile(
    r"(PATH|HOME|TMPDIR|LD_.*|PYTHON.*|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|USE_ENV_PROXY|TLS_.*)|SSL_CERT_.*|SSLKEYLOGFILE|OPENSSL_.*|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE|.*_PROXY|TOOLHUB_.*)",
    re.IGNORECASE,
)


def check_origin(manifest: Manifest) -> Iterator[ManifestFinding]:
    server, origin = manifest.server, manifest.origin
    if server is None and not manifest.is_by_gate:
        if "object" in origin and manifest.module:
            yield from _check_object(manifest, origin["object"])
        elif origin:
            yield ALONE.at(("origin",), "The tool is written for a hub and names an origin.")
        return
    if not origin:
        yield MISSING.at(("origin",), "A server of others or a service answers, and nothing says which.")
        return
    kind = "package" if server is not None else "document" if manifest.operation is not None else "url"
    if kind not in origin:
        yield MISSING.at(("origin",), "The origin is of another kind than what answers.")
        return
    if server is None:
        return
    yield from _check_package(manifest, origin, ("origin", "package"))
    if manifest.document.get("requires_sandbox") is False:
        yield OUTSIDE.at(("requires_sandbox",), "A server of others answers, but no sandbox is asked for.")
    if manifest.is_on_node and "script" not in server:
        yield PROGRAM.at(("implementation", "server"), "It names a module, which is of Python.")
    if manifest.image not in _find_images(manifest):
        yield IMAGE.at(("implementation", "image"), f"The image would be {manifest.image}.")
    if manifest.idempotency == "keyed":
        yield KEYED.at(("idempotency",), "The key of a call would reach nobody.")
    yield from _check_environment(manifest, server.get("environment", []))


def _find_images(manifest: Manifest) -> tuple[str, ...]:
    """Those that the server may run in; one that starts programs in any."""
    if manifest.capabilities.get("browser"):
        return ("browser",) if manifest.is_on_node else ()
    if manifest.capabilities.get("proc"):
        return (manifest.image,)
    return ("node",) if manifest.is_on_node else ("python",)


def _check_object(manifest: Manifest, said: dict[str, str]) -> Iterator[ManifestFinding]:
    if not manifest.dependencies:
        yield NOT_NEEDED.at(("origin", "object"), "No dependencies are named, so the hub has nothing to try it with.")
    elif "package" in said:
        yield from _check_package(manifest, said, ("origin", "object", "package"))
    if manifest.document.get("requires_sandbox") is False:
        yield OUTSIDE.at(("requires_sandbox",), "An object of others answers, but no sandbox is asked for.")


def _check_package(manifest: Manifest, said: dict[str, str], at: tuple[str, ...]) -> Iterator[ManifestFinding]:
    if manifest.is_on_node:
        if f"{said['package']}@{said['version']}" not in manifest.dependencies:
            yield NOT_NEEDED.at(at, f"{said['package']}@{said['version']} is not among the dependencies.")
        return
    named = {
        normalize_name(re.split(r"[\s\[=<>!~;@]", each, maxsplit=1)[0]): each.partition("==")[2].split()[0:1]
        for each in manifest.dependencies
    }
    if named.get(normalize_name(said["package"])) != [said["version"]]:
        yield NOT_NEEDED.at(at, f"{said['package']}=={said['version']} is not among the dependencies.")


def find_entry_differences(manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[ManifestFinding]:
    """What a model is shown, or a policy decides by, that the server's own entry does not say: no error, for the author may know
    better, but the reviewer sees it. ``files`` hold the listing that is shipped, and it has been held against the digests.
    """
    if "object" in manifest.origin:
        yield from _find_object_differences(manifest, files.get(f"{manifest.package}/{MADE_FILE}", b""))
        yield from _find_source_differences(manifest, files)
    if not manifest.listing:
        return
    entry = Listing.from_bytes(files[f"{manifest.package}/{LISTING_FILE}"]).tools[manifest.origin["tool"]]
    pinned = {"description": entry.get("description"), "input_schema": read_entry_schema(entry, "inputSchema")}
    for name, said in pinned.items():
        if compute_json_digest(said) != compute_json_digest(manifest.document.get(name)):
            yield _differs(name, f"{name} differs from the server's entry, which {LISTING_FILE} has.")
    hints = entry.get("annotations")
    says_it_reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
    if manifest.side_effect in ("None", "Read") and not says_it_reads:
        yield _differs(
            "side_effect",
            f"side_effect is {manifest.side_effect}, and the server's entry does not say that the tool only reads.",
        )


def _find_object_differences(manifest: Manifest, made: bytes) -> Iterator[ManifestFinding]:
    """What was pinned travels beside the source files; whoever has changed it has only the digest left to be held against."""
    try:
        pinned = STRICT.read(made)["objects"][manifest.origin["object"]["name"]]["pinned"]
        is_it = isinstance(pinned, dict) and compute_json_digest(pinned) == manifest.origin["object_digest"]
    except (JsonRefused, KeyError, TypeError):
        is_it = False
    if not is_it:
        yield _differs("origin", f"{MADE_FILE} does not hold what the origin pins, so nobody can see what differs.")
        return
    for name in ("description", "input_schema", "output_schema"):
        if compute_json_digest(pinned.get(name)) != compute_json_digest(manifest.document.get(name)):
            yield _differs(name, f"{name} differs from what the object says of itself, which {MADE_FILE} has.")


def _find_source_differences(manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[ManifestFinding]:
    """Of the module that is named, what travels. Which module a package brings is its author's word: no package is here to look at."""
    said = manifest.origin["object"]
    module = re.split(r"[.:]", said["name"], maxsplit=1)[0]
    folder = f"{manifest.package}/{SOURCE_FOLDER}/"
    found = [
        (name.removeprefix(folder), files[name])
        for name in sorted(files)
        if name.startswith(f"{folder}{module}/") or name == f"{folder}{module}.py"
    ]
    if "source_digest" in said and compute_files_digest(found) != said["source_digest"]:
        yield _differs("origin", f"{SOURCE_FOLDER}/ holds other files of {module} than source_digest was made of.")
    if "package" in said and found:
        yield _differs("origin", f"The object is said to be of {said['package']}, and a module {module} travels along.")


def _differs(name: str, message: str) -> ManifestFinding:
    return ManifestFinding(
        f"/{name}",
        "origin.differs",
        message,
        "Hold the two against each other: what is pinned is the word of those who made it.",
        "warning",
    )


def _check_environment(manifest: Manifest, environment: list[dict[str, str]]) -> Iterator[ManifestFinding]:
    secrets = {each["name"] for each in manifest.secrets}
    settings = (manifest.config_schema or {}).get("properties", {})
    seen: set[str] = set()
    for place, each in enumerate(environment):
        at = ("implementation", "server", "environment", place)
        if _RESERVED.fullmatch(each["name"]):
            yield RESERVED.at((*at, "name"), f"{each['name']} is set by the sandbox.")
        if "value" in each and is_secret_variable(each["name"], each["value"]):
            yield SECRET.at((*at, "value"), f"{each['name'][:64]} looks like a secret, and its value stands here.")
        elif "value" in each and is_secret_name(each["name"]):
            yield SECRET_NAME.at(
                (*at, "value"), f"{each['name'][:64]} is called like a secret; its value opens nothing."
            )
        if each["name"] in seen:
            yield UNDECLARED.at((*at, "name"), f"{each['name']} is named twice.")
        seen.add(each["name"])
        if "secret" in each and each["secret"] not in secrets:
            yield UNDECLARED.at((*at, "secret"), f"The manifest declares no secret {each['secret'][:64]}.")
        if "config" in each and each["config"] not in settings:
            yield UNDECLARED.at((*at, "config"), f"config_schema has no property {each['config'][:100]}.")
