"""Do the reference pages say what the code does?

Writes the generated pages of ``docs/reference`` from the code they describe; with ``--check`` writes nothing, names the
pages that differ and exits with 2. The pages depend on the sources only, never on the environment they are built in.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.urls import get_resolver
from drf_spectacular.generators import SchemaGenerator

from access.models import CONSENT_TRANSITIONS, ConsentState
from access.roles import AGENT_SCOPES, PERMISSIONS, ROLE_PERMISSIONS, SCOPES, Role
from evidence.kinds import PAIR, Kind
from invocations.models import TRANSITIONS as INVOCATION_TRANSITIONS
from invocations.models import State
from registry.models import TRANSITIONS as TOOL_TRANSITIONS
from registry.models import ToolState
from toolhub.kernel.problems import PlatformCode, Retryable, catalogue
from unitools.manifest import SCHEMA_PATH, manifest_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

ROOT: Path = settings.BASE_DIR
REFERENCE = ROOT / "docs" / "reference"
PACKAGES = ("evidence", "access", "registry", "invocations", "toolhub")
DJANGO_OPTIONS = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color"}
DJANGO_OPTIONS |= {"--force-color", "--skip-checks"}


def page(title: str, source: str, *parts: str) -> str:
    note = f"<!-- Generated from {source} by `manage.py build_docs`. Do not edit. -->"
    return "\n\n".join([note, f"# {title}", *(part.strip("\n") for part in parts)]) + "\n"


def cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *[[cell(value) for value in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(value: Any) -> str:
    return f"`{value}`" if value not in ("", None) else ""


# Problems


def problems() -> str:
    rows = [
        (
            code(cls.reason),
            code(cls.code),
            cls.status,
            code(cls.retryable) + (f" after {cls.retry_after_s} s" if cls.retry_after_s else ""),
            code(cls.error_type()),
            cls.title(),
        )
        for cls in catalogue()
        if cls.__module__.partition(".")[0] in PACKAGES
    ]
    words = {
        Retryable.NO: "the same call would be refused again",
        Retryable.YES: "the same call may succeed later",
        Retryable.SAME_KEY: "only with the same Idempotency-Key, because the first call may have had its effect",
        Retryable.AFTER_ACTION: "once somebody has done what `remedy` says",
    }
    used = {cls.code for cls in catalogue()}
    idle = [f"`{each}`" for each in PlatformCode if each not in used]
    return page(
        "Problems",
        "the problem classes",
        "Every refusal and failure that a caller can meet. `code` is the closed set of SPEC-6 and `INTERNAL` "
        "([RFC 0001](../rfc/0001-internal-code.md)); `reason` is what programs branch on; `error_type` is the older tool "
        "service's word, where it had one. A running hub serves the same list at `/api/v1/errors`, and one entry at "
        "`/api/v1/errors/REASON`, which is the `type` of each answer.",
        table(("reason", "code", "HTTP", "retryable", "error_type", "meaning"), rows),
        "## `retryable`",
        table(("value", "sending it again helps …"), [(code(value), text) for value, text in words.items()]),
        f"Codes of the closed set that no problem uses yet: {', '.join(idle)}." if idle else "",
    )


# Manifest


def _constraints(node: dict[str, Any]) -> str:
    said = []
    if "enum" in node:
        said.append("one of " + ", ".join(code(value) for value in node["enum"]))
    if "const" in node:
        said.append(f"always {code(node['const'])}")
    if "pattern" in node:
        said.append(f"matches {code(node['pattern'])}")
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        if low in node or high in node:
            said.append(f"{node.get(low, 0 if high in node else '')} to {node.get(high, '∞')}{unit}")
    if node.get("format"):
        said.append(f"a {node['format']}")
    return "; ".join(said)


def _fields(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, child in node.get("properties", {}).items():
        path = f"{prefix}{name}"
        needed = "yes" if name in node.get("required", []) else ""
        default = code(json.dumps(child["default"])) if "default" in child else ""
        text = ". ".join(part for part in (child.get("description", "").rstrip("."), _constraints(child)) if part)
        yield code(path), child.get("type", ""), needed, default, text
        yield from _fields(child, f"{path}.")
        yield from _fields(child.get("items", {}), f"{path}[].")


def _text_of(node: ast.expr | None) -> str:
    """A string literal as text; what is filled in when it runs is shown as …"""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text_of(part) if isinstance(part, ast.Constant) else "…" for part in parts)
        case _:
            return "…"


def _findings() -> Iterator[tuple[str, ...]]:
    tree = ast.parse((ROOT / "registry" / "checks.py").read_text())
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Finding"), args=[_, rule, _, fix, *rest]) if isinstance(rule, ast.Constant):
                yield code(_text_of(rule)), _text_of(rest[0]) if rest else "error", _text_of(fix)


def manifest() -> str:
    return page(
        "Manifest",
        "unitools/manifest.schema.json and registry/checks.py",
        "One JSON document describes one version of a tool. Its shape is the JSON Schema 2020-12 in "
        "[manifest.schema.json](manifest.schema.json), which a running hub serves at `/api/v1/manifest-schema`. "
        "`tools/commerce/manifests/` holds complete examples.",
        "## Fields",
        table(("field", "type", "required", "default", "meaning"), _fields(manifest_schema())),
        "## What registration checks beside the shape",
        "An `error` refuses the manifest (`MANIFEST.INVALID`, with pointer, rule and fix for each finding); a `warning` "
        "goes along to the reviewer. `manifest.*` findings come from the schema above.",
        table(("rule", "severity", "fix"), sorted(set(_findings()))),
        "Fields that the hub accepts and keeps but does not act on yet: `limits.files`, `limits.concurrency`, "
        "`concurrency`, `provider_compat`, `deprecations`, `consent.scope`.",
    )


# API


def _document() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.loads(json.dumps(document))  # type: ignore[no-any-return] # lazy texts become plain ones


def openapi() -> str:
    return json.dumps(_document(), indent=2, ensure_ascii=False) + "\n"


def _scopes() -> dict[tuple[str, str], str]:
    """(method, path) to the scope that its view names."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    generator._initialise_endpoints()
    found = {}
    for path, _, method, view in generator._get_paths_and_endpoints():
        scope = getattr(view, "required_scope", "")
        found[method, path] = scope if isinstance(scope, str) else scope.get(method, "")
    return found


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    if not name:
        return "Body: a JSON document." if content else ""
    rows = []
    for field, node in schemas[name]["properties"].items():
        needed = "yes" if field in schemas[name].get("required", []) else ""
        inner = (node.get("$ref") or next(iter(node.get("allOf", [{}]))).get("$ref", "")).rpartition("/")[2]
        kind = ", ".join(schemas[inner].get("properties", {})) if inner else node.get("type", "JSON")
        rows.append(
            (
                code(field),
                f"object: {kind}" if inner else kind,
                needed,
                code(node.get("default")),
                node.get("description", ""),
            )
        )
    return table(("field", "type", "required", "default", "meaning"), rows)


def _open_endpoints(documented: set[str]) -> Iterator[tuple[str, str]]:
    """Endpoints outside the OpenAPI document: plain views that ask for no key."""
    for pattern in get_resolver().url_patterns:
        inner = getattr(pattern, "url_patterns", None)
        for each in inner if inner is not None and str(pattern.pattern) == "api/v1/" else []:
            path = "/api/v1/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(each.pattern))
            if path not in documented:
                yield path, (each.callback.__doc__ or "").strip().partition("\n")[0]


def api() -> str:
    document, scopes = _document(), _scopes()
    schemas = document["components"]["schemas"]
    parts = []
    for path, item in sorted(document["paths"].items()):
        for method, operation in item.items():
            asked = [each for each in operation.get("parameters", []) if each["in"] != "path"]
            parts.append(f"### {method.upper()} {path}")
            scope = scopes.get((method.upper(), path), "")
            parts.append(
                f"{operation.get('description', '').strip()}\n\nScope: {code(scope) or 'none'}. "
                f"Answers: {', '.join(sorted(operation['responses']))}. Operation: {code(operation['operationId'])}."
            )
            if asked:
                rows = [(code(each["name"]), each["in"], each.get("description", "")) for each in asked]
                parts.append(table(("parameter", "in", "meaning"), rows))
            if body := _body(operation, schemas):
                parts.append(body)
    plain = {"/api/v1/errors": "The problem catalogue.", "/api/v1/openapi.json": "The OpenAPI document."}
    rows = [
        (code("GET " + path), plain.get(path, text)) for path, text in sorted(_open_endpoints(set(document["paths"])))
    ]
    rows += [
        ("`GET /healthz`", "200 while the process lives."),
        ("`GET /readyz`", "200 when calls can be accepted; 503 names the part that cannot."),
    ]
    return page(
        "REST API",
        "the OpenAPI document and the views",
        "The document itself is [openapi.json](openapi.json); a running hub serves it at `/api/v1/openapi.json` and shows it at "
        "`/docs/api`. Agents send `Authorization: Bearer hub_…`. Every answer is an envelope: `ok`, `data`, `warnings`, "
        "`error`, `ttl_seconds`, `evidence`, and `call` where a call was made. An answer with a problem has the problem's HTTP "
        "status, the media type `application/problem+json`, and is an RFC 9457 document at once (see [problems](problems.md)).",
        "## With an API key",
        *parts,
        "## Without a key",
        table(("endpoint", "answers"), rows),
    )


# Settings


def _asked(tree: ast.AST) -> Iterator[tuple[str, ast.expr | None, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="env" | "env_int"), args=[ast.Constant(value=str(name)), *rest]):
                yield name, rest[0] if rest else None, node.lineno


def _sample_comments() -> dict[str, str]:
    """What dotenv-sample says above each name; one comment may stand above several."""
    found, comment, fresh = {}, [], True
    for line in (ROOT / "dotenv-sample").read_text().splitlines():
        if assigned := re.match(r"#?(\w+)=", line):
            found[assigned[1]] = " ".join(comment)
            fresh = True
        elif line.startswith("# ") and not line.startswith("# ---"):
            comment, fresh = ([line[2:]] if fresh else [*comment, line[2:]]), False
        else:
            comment, fresh = [], True
    return found


def settings_page() -> str:
    source = (ROOT / "toolhub" / "settings.py").read_text()
    tree, lines, comments = ast.parse(source), source.splitlines(), _sample_comments()
    rows: dict[str, tuple[str, ...]] = {}
    for name, default, line in _asked(tree):
        remark = lines[line - 1].partition("  # ")[2]
        said = "; ".join(part for part in (comments.get(name, ""), remark) if part)
        shown = code(ast.unparse(default)) if default is not None else "empty"
        kept = rows.get(name)
        rows[name] = (code(name), shown if kept is None or kept[1] == "empty" else kept[1], said)
    policy = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "TOOLHUB_POLICY"
    )
    return page(
        "Settings",
        "toolhub/settings.py and dotenv-sample",
        "Environment variables, or the same names in `.env`, which `make run` and `docker compose` read. All are optional. "
        "Defaults are shown as the code has them. `TOOLHUB_DATABASE_URL` and `TOOLHUB_REDIS_URL` are set both or neither.",
        table(("name", "default", "meaning"), rows.values()),
        "Read by libraries and not by the hub: `OTEL_EXPORTER_OTLP_ENDPOINT` (where spans go; without it they go nowhere) and "
        "`DOCKER_HOST` (when `TOOLHUB_DOCKER_URL` is empty).",
        "## Policy",
        "One ceiling for every tenant, a constant in `toolhub/settings.py`. Versioned policies per tenant are not there yet.",
        f"```python\n{_pretty(policy)}\n```",
    )


def _pretty(node: ast.expr | None) -> str:
    assert isinstance(node, ast.Dict)
    inner = [
        f"    {ast.unparse(key)}: {ast.unparse(value)},"
        for key, value in zip(node.keys, node.values, strict=True)
        if key
    ]
    return "\n".join(["TOOLHUB_POLICY = {", *inner, "}"])


# Roles, states, evidence kinds, commands


def roles() -> str:
    rows = [
        (code(name), text, *("yes" if name in ROLE_PERMISSIONS[role] else "" for role in Role))
        for name, text in PERMISSIONS.items()
    ]
    return page(
        "Roles, permissions and scopes",
        "access/roles.py",
        "## People",
        "A person has roles within a tenant. django-guardian holds a role's permissions as object permissions on the tenant, so "
        "one permission can also be given to one person alone. Nobody reviews their own submission or decides on their own "
        "request, whatever the role.",
        table(("permission", "allows", *(role.label for role in Role)), rows),
        "## Agents",
        "An API key carries scopes. They open an endpoint; which tools the agent may call is decided by its grants.",
        table(
            ("scope", "allows", "a new key has it"),
            [(code(name), text, "yes" if name in AGENT_SCOPES else "") for name, text in SCOPES.items()],
        ),
    )


def _diagram(transitions: Mapping[str, frozenset[str]], start: str) -> str:
    lines = ["stateDiagram-v2", f"    [*] --> {start}"]
    for state, following in transitions.items():
        lines += [f"    {state} --> {to}" for to in sorted(following)] or [f"    {state} --> [*]"]
    rows = [
        (code(state), ", ".join(code(to) for to in sorted(following)) or "final")
        for state, following in transitions.items()
    ]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n\n" + table(("state", "may become"), rows)


def states() -> str:
    return page(
        "States",
        "the TRANSITIONS of registry, access and invocations",
        "The same dictionaries decide in the services. A change that is not in them is refused with `STATE.CONFLICT`.",
        "## Tool",
        "`enabled` with another approved version stays `enabled`: the version that calls get is replaced.",
        _diagram(TOOL_TRANSITIONS, ToolState.REGISTERED),
        "## Consent",
        "What has run out counts as `expired` from that moment, also before the sweeper has written it down.",
        _diagram(CONSENT_TRANSITIONS, ConsentState.REQUESTED),
        "## Invocation",
        "`received` is passed through in one transaction and never stored. Nothing enters `held` or `expired` yet, and no run goes "
        "back from `running` to `queued`: they belong to holding calls for a consent and to retries, which are not there yet.",
        _diagram(INVOCATION_TRANSITIONS, State.RECEIVED),
    )


def _writers() -> dict[str, list[str]]:
    """Kind name to the functions that name it."""
    found: dict[str, list[str]] = {}
    for file in sorted(path for package in PACKAGES for path in (ROOT / package).glob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef) or file.name == "views.py":
                continue
            for node in ast.walk(function):
                match node:
                    case ast.Attribute(value=ast.Name(id="Kind"), attr=name):
                        found.setdefault(name, []).append(f"{file.relative_to(ROOT)}: {function.name}")
    return found


def evidence_kinds() -> str:
    writers = _writers()
    rows = []
    for kind in Kind:
        where = "<br>".join(code(each) for each in dict.fromkeys(writers.get(kind.name, []))) or "nothing writes it yet"
        rows.append((code(kind.value), "one of the pair" if kind in PAIR else "", where))
    return page(
        "Kinds of facts",
        "evidence/kinds.py and the services that write them",
        "Names are never changed: they are in leaves that people may have verified. Each call has exactly one `invocation.began` "
        "and one `invocation.ended`; a unique constraint holds that.",
        table(("kind", "", "written by"), rows),
    )


def commands() -> str:
    rows = []
    for name, app in sorted(get_commands().items()):
        if app != "toolhub":
            continue
        command = load_command_class(app, name)
        parser = command.create_parser("manage.py", name)
        options = [action for action in parser._actions if not DJANGO_OPTIONS & set(action.option_strings)]
        said = "<br>".join(f"`{', '.join(action.option_strings) or action.dest}`: {action.help}" for action in options)
        rows.append((code(f"manage.py {name}"), command.help, said))
    targets = re.findall(r"^([a-z-]+):[^#\n]*## (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return page(
        "Commands",
        "the Makefile and the management commands",
        "## make",
        table(("target", "what it does"), [(code(f"make {name}"), text) for name, text in targets]),
        "## manage.py",
        "As `.venv/bin/python manage.py …`. Exit status: 0 good, 1 could not run, 2 ran and the answer is no.",
        table(("command", "what it does", "options"), rows),
    )


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api,
    "commands.md": commands,
    "evidence-kinds.md": evidence_kinds,
    "manifest.md": manifest,
    "manifest.schema.json": lambda: SCHEMA_PATH.read_text(),
    "openapi.json": openapi,
    "problems.md": problems,
    "roles.md": roles,
    "settings.md": settings_page,
    "states.md": states,
}


class Command(BaseCommand):
    help = "Write the generated pages of docs/reference. With --check: name the pages that differ, and exit with 2."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--check", action="store_true", help="compare only")

    def handle(self, *args: Any, check: bool = False, **options: Any) -> None:
        different = []
        for name, build in PAGES.items():
            path, text = REFERENCE / name, build()
            if path.exists() and path.read_text() == text:
                continue
            different.append(path.relative_to(ROOT))
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        for path in different:
            self.stdout.write(f"{path} {'differs from the code' if check else 'written'}")
        if check and different:
            self.stdout.write("Type `.venv/bin/python manage.py build_docs` and commit the result.")
            sys.exit(2)
