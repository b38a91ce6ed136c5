"""Manifest: what it says, as typed values.

The document itself is described by ``manifest.schema.json``, a JSON Schema 2020-12 that is published. :class:`Manifest` is
a view of a document that is valid against it, with the defaults filled in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from unitools.mcp_argument_headers import find_argument_headers
from unitools.mcp_http import MODERN
from unitools.npm_names import is_of_npm

SCHEMA_PATH = Path(__file__).with_name("manifest.schema.json")
BROWSER_MEMORY_BYTES = 1024 * 1024 * 1024  # where a manifest says nothing: a browser is several programs


@lru_cache(maxsize=1)
def manifest_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA_PATH.read_text())
    return schema


@dataclass(frozen=True, slots=True)
class ModelPart:
    """What a manifest says of a model that a tenant has connected. The hub writes it, and no author does."""

    provider: str
    name: str  # the provider's own
    operation: str  # chat, embed or rerank
    window_tokens: int | None
    max_output_tokens: int | None
    default_output_tokens: int  # what an answer may have where the request says nothing
    features: dict[str, str]  # part of a request: passed, warned or refused
    unpriced: str  # what becomes of a call without a known price: refuse or count
    fallbacks: tuple[str, ...] = ()  # ids of the models that are asked in its place, where its provider does not answer
    caller_tools: str = "refuse"  # what becomes of tools that callers describe themselves: refuse or allow


@dataclass(frozen=True, slots=True)
class Manifest:
    """A valid manifest document. ``document`` is what was submitted; nothing is added to it."""

    document: dict[str, Any]

    def _get(self, name: str) -> Any:
        return self.document.get(name, manifest_schema()["properties"][name].get("default"))

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def name(self) -> str:
        """The last segment of the id (TOOLS-2), whether the manifest writes it out or not."""
        return self.id.rpartition(".")[2]

    @property
    def version(self) -> str:
        return str(self.document["version"])

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def display_name(self) -> str:
        return str(self.document["display_name"])

    @property
    def description(self) -> str:
        return str(self.document["description"])

    @property
    def call_sentence(self) -> str:
        """How one call reads to the person who decides on it (:mod:`unitools.call_sentences`); empty: the manifest does not say."""
        return str(self.document.get("call_sentence", ""))

    @property
    def examples(self) -> list[str]:
        """What people may ask for, in their words; models are not sent them."""
        return list(self._get("examples"))

    @property
    def localizations(self) -> dict[str, dict[str, Any]]:
        """By tag of a language: its own display_name, description, examples, any of them (:mod:`unitools.localizations`)."""
        return dict(self._get("localizations"))

    @property
    def tags(self) -> list[str]:
        return list(self._get("tags"))

    @property
    def input_schema(self) -> dict[str, Any]:
        return dict(self.document["input_schema"])

    @property
    def output_schema(self) -> dict[str, Any]:
        return dict(self.document["output_schema"])

    @property
    def output_repair(self) -> list[str]:
        """What the hub may do to an output that does not match: ``wrap``, ``coerce``, ``drop_unknown``."""
        return list(self._get("output_repair"))

    @property
    def determinism(self) -> tuple[str, list[str]]:
        """What a replay may expect of outputs: ``exact`` but for these pointers, or ``none``: they differ each time."""
        said = self._get("determinism")
        return str(said.get("output", "exact")), list(said.get("ignore", []))

    @property
    def capabilities(self) -> dict[str, Any]:
        return dict(self._get("capabilities"))

    @property
    def domains(self) -> list[str]:
        """The kinds of capabilities that it asks for: ``fs``, ``net`` … in the order of the schema."""
        known = manifest_schema()["properties"]["capabilities"]["properties"]
        return [name for name in known if self.capabilities.get(name)]

    @property
    def config_schema(self) -> dict[str, Any] | None:
        """What a tenant sets for its own installation; None: there is nothing to set."""
        schema = self.document.get("config_schema")
        return None if schema is None else dict(schema)

    @property
    def secrets(self) -> list[dict[str, Any]]:
        """``{name, description, hosts?, required}`` for each; ``required`` is filled in."""
        return [{"required": True} | secret for secret in self._get("secrets")]

    @property
    def data_classes(self) -> list[str]:
        return list(self._get("data_classes"))

    @property
    def scopes(self) -> list[dict[str, str]]:
        return list(self._get("scopes"))

    @property
    def side_effect(self) -> str:
        return str(self.document["side_effect"])

    @property
    def safety_class(self) -> str:
        return str(self._get("safety_class"))

    @property
    def timeout_ms(self) -> int:
        return int(self._get("timeout_ms"))

    @property
    def is_async(self) -> bool:
        return bool(self._get("async"))

    @property
    def idempotency(self) -> str:
        return str(self._get("idempotency"))

    @property
    def idempotency_keep_s(self) -> int:
        """How long a key is kept."""
        return int(self._get("idempotency_keep_seconds"))

    @property
    def is_serial(self) -> bool:
        """Whether one call runs at a time."""
        return str(self._get("concurrency")) == "serial"

    @property
    def group(self) -> str:
        """What the id says before its last segment; tools of one group may keep files together."""
        return self.id.rpartition(".")[0]

    @property
    def files_package(self) -> str:
        """Whose code alone shares what it keeps with its group: the package that brings the server, else the shipped folder."""
        return str(self.origin.get("package") or self.package)

    @property
    def state(self) -> dict[str, Any] | None:
        """The files that calls leave for the next: ``kind``, ``scope``, ``max_files``, ``max_bytes``. None: they leave none."""
        said = self.document.get("state")
        if said is None:
            return None
        parts = manifest_schema()["properties"]["state"]["properties"]
        return {name: part["default"] for name, part in parts.items() if "default" in part} | dict(said)

    @property
    def leaves_files(self) -> bool:
        """Whether what its calls leave is kept. Of a tool that only reads nothing is, whatever it does to its copies."""
        return self.state is not None and self.side_effect != "Read"

    @property
    def keeps(self) -> tuple[int, int] | None:
        """How many files of how many bytes calls leave for the next."""
        state = self.state
        return None if state is None else (int(state["max_files"]), int(state["max_bytes"]))

    @property
    def serial_key(self) -> str:
        """Calls of one key run one at a time; empty: nothing keeps them apart. What keeps files shares them with its group, and what
        only reads has copies of its own."""
        if self.leaves_files:
            return self.group
        return self.id if self.is_serial else ""

    @property
    def max_concurrency(self) -> int | None:
        """How many calls may be under way at a time; None: the manifest names no limit. Calls of a serial tool wait for each other."""
        limit = self._get("limits").get("concurrency")
        return None if limit is None else int(limit)

    @property
    def honours_dry_run(self) -> bool:
        return bool(self._get("dry_run"))

    @property
    def quotes(self) -> list[str]:
        """What the answer quotes that is soon out of date: ``price``, ``stock``, ``route``."""
        return list(self._get("quotes"))

    @property
    def deprecations(self) -> list[dict[str, str]]:
        return list(self._get("deprecations"))

    @property
    def models(self) -> list[str]:
        """The models that the tool is meant for; empty: any."""
        return list(self._get("provider_compat").get("models", []))

    @property
    def platform(self) -> str:
        """The range of toolhub's versions that it needs; empty: any."""
        return str(self._get("provider_compat").get("platform", ""))

    @property
    def ttl_seconds(self) -> int | None:
        value = self.document.get("ttl_seconds")
        return None if value is None else int(value)

    @property
    def is_model(self) -> bool:
        return "model" in self.document

    @property
    def model(self) -> ModelPart | None:
        """None: it is a tool."""
        part = self.document.get("model")
        return None if part is None else ModelPart(**part | {"fallbacks": tuple(part.get("fallbacks", ()))})

    @property
    def _implementation(self) -> dict[str, Any]:
        """Of a model empty: its provider answers."""
        return dict(self.document.get("implementation", {}))

    @property
    def module(self) -> str:
        """Empty when the tool is a program, a server's, a service's, or a model."""
        return str(self._implementation.get("module", ""))

    @property
    def entry(self) -> str:
        default = manifest_schema()["properties"]["implementation"]["properties"]["entry"]["default"]
        return str(self._implementation.get("entry", default))

    @property
    def program(self) -> tuple[str, ...]:
        """A program of the image and its arguments; empty when the tool is a function or a server's."""
        return tuple(self._implementation.get("program", ()))

    @property
    def server(self) -> dict[str, Any] | None:
        """How the MCP server of a dependency is started that answers: ``script`` or ``module``, ``arguments``, ``environment``,
        ``listing``. None: no server does."""
        said = self._implementation.get("server")
        return None if said is None else dict(said)

    @property
    def server_start(self) -> dict[str, Any] | None:
        """What a box is told of :attr:`server`: with the ``package`` that alone may bring it. None: no server answers."""
        server = self.server
        return None if server is None else server | {"package": self.origin.get("package", "")}

    @property
    def remote(self) -> dict[str, Any] | None:
        """Where the MCP server is that answers: ``url``, ``credentials``, ``listing``, and the ``revision`` of MCP that is spoken with
        it. None: no such server does."""
        said = self._implementation.get("remote")
        return said and {"credentials": []} | said | {"revision": self.origin.get("protocol", "")}

    @property
    def account(self) -> dict[str, Any] | None:
        """That the server or service is asked as the person whom a call is for, by their own account there, with its ``scopes``, and
        of a service who gives tokens for it. None: as the tenant, or as nobody."""
        said = (self.remote or self.operation or {}).get("account")
        return None if said is None else {"scopes": []} | said

    @property
    def account_resource(self) -> str:
        """The address for which a person's account is good; empty: no account is used."""
        if self.account is None:
            return ""
        return str(self.remote["url"] if self.remote else (self.operation or {})["server"])

    @property
    def is_on_node(self) -> bool:
        """Whether what answers is a server of a package of npm, which Node.js runs."""
        return self.server is not None and is_of_npm(str(self.origin.get("package", "")))

    @property
    def listing(self) -> str:
        """The folder that is shipped of a tool which a server of others answers: its list of tools. Empty: no server does."""
        return str((self.server or self.remote or {}).get("listing", ""))

    @property
    def is_by_gate(self) -> bool:
        """Whether the hub's gate asks others, with its own credentials, and nothing of an author's runs."""
        return self.operation is not None or self.remote is not None

    @property
    def gate_credentials(self) -> list[dict[str, str]]:
        """What the gate adds to its requests; empty where it makes none."""
        return list((self.operation or self.remote or {}).get("credentials", ()))

    @property
    def operation(self) -> dict[str, Any] | None:
        """The HTTP request that a call becomes (unitools.openapi.requests): ``server``, ``method``, ``path``, ``arguments``, ``body``,
        ``credentials``, ``accept``, ``strict``, and where they are said ``body`` and ``idempotency_header``. None: no service
        answers."""
        said = self._implementation.get("operation")
        parts = manifest_schema()["properties"]["implementation"]["properties"]["operation"]["properties"]
        return said and {name: part["default"] for name, part in parts.items() if "default" in part} | said

    @property
    def file_arguments(self) -> tuple[str, ...]:
        """The arguments that are ids of files, which the request to a service carries."""
        operation = self.operation or {}
        body = operation.get("body", {})
        named = [each["argument"] for each in operation.get("arguments", ()) if each.get("file")]
        return (*named, body["argument"]) if body.get("file") else tuple(named)

    @property
    def has_package(self) -> bool:
        """Whether anything is shipped to the sandbox: nothing is for an operation of a service."""
        return self.operation is None and not self.is_model

    @property
    def origin(self) -> dict[str, Any]:
        """What the tool was brought from: a server of a package or elsewhere, a document's operation, an object. Empty: it
        was written for a hub."""
        return dict(self.document.get("origin", {}))

    @property
    def is_tried(self) -> bool:
        """Whether the hub tries it before its review: a server of others is started, an object is made."""
        return self.server is not None or "object" in self.origin

    @property
    def server_request(self) -> dict[str, Any]:
        """What the server is asked for: its ``tool``, and whether the result is ``structured``; empty: no server answers."""
        origin = self.origin
        if "tool" not in origin:
            return {}
        asks = {"tool": origin["tool"], "structured": origin["result"] == "structured"}
        return asks | {"headers": said} if (said := self.argument_headers) else asks

    @property
    def argument_headers(self) -> list[dict[str, Any]]:
        """Which arguments a server somewhere else wants to hear in headers too (:mod:`unitools.mcp_argument_headers`).
        :class:`~unitools.mcp_argument_headers.MarkUnfit`."""
        remote = self.remote
        return find_argument_headers(self.input_schema) if remote and remote["revision"] >= MODERN else []

    @property
    def package(self) -> str:
        """The folder that is shipped to the sandbox; empty for an operation of a service."""
        return self.listing or str(self._implementation.get("package") or self.module.partition(".")[0])

    @property
    def image(self) -> str:
        """The name of the sandbox image that it runs in."""
        usual = "browser" if self.capabilities.get("browser") else "node" if self.is_on_node else "python"
        return str(self._implementation.get("image", usual))

    @property
    def isolation(self) -> str:
        """The weakest level of isolation that the tool accepts; empty: whatever the hub and its policies give.

        There is no process to fork a program, a browser or a server in JavaScript from, so a box of theirs is used once.
        """
        asked = str(self.document.get("isolation", ""))
        used_once = bool(self.program or self.is_on_node or self.capabilities.get("browser"))
        return "single" if used_once and asked != "cold" else asked

    @property
    def isolated_by_agent(self) -> bool:
        """Whether a box that served one agent serves no other one."""
        return str(self._get("isolate_by")) == "agent"

    @property
    def dependencies(self) -> list[str]:
        return list(self._get("dependencies"))

    @property
    def dependency_constraints(self) -> list[str]:
        return list(self._get("dependency_constraints"))

    @property
    def dependency_lock(self) -> list[str]:
        """The lines of a lock (unitools.dependency_locks); empty: the hub resolves the dependencies."""
        return list(self._get("dependency_lock"))

    def limit(self, name: str) -> int:
        """A limit in its unit (bytes, count, levels), or its default. ``concurrency`` has none: see max_concurrency."""
        default = manifest_schema()["properties"]["limits"]["properties"][name].get("default")
        if name == "memory_bytes" and self.capabilities.get("browser"):
            default = BROWSER_MEMORY_BYTES
        return int(self._get("limits").get(name, default))

    @property
    def consent_validity_s(self) -> int:
        default = manifest_schema()["properties"]["consent"]["properties"]["validity_seconds"]["default"]
        return int(self._get("consent").get("validity_seconds", default))

    @property
    def consent_scope(self) -> str:
        """The widest consent that is enough: ``once``, ``period`` or ``standing``."""
        default = manifest_schema()["properties"]["consent"]["properties"]["scope"]["default"]
        return str(self._get("consent").get("scope", default))

    @property
    def needs_consent(self) -> bool:
        """TOOLS-19: High, Write and Process need one whatever the manifest says."""
        return (
            bool(self._get("consent").get("required", False))
            or self.safety_class == "High"
            or self.side_effect in ("Write", "Process")
        )
