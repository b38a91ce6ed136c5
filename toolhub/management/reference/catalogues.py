"""Catalogues: the closed sets of the hub, such as problems, roles, states, kinds of facts, commands."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.management import get_commands, load_command_class

from access.models import (
    CONSENT_TRANSITIONS,
    POLICY_TRANSITIONS,
    REQUEST_TRANSITIONS,
    ConsentState,
    PolicyState,
    RequestState,
)
from access.roles import AGENT_SCOPES, ON_AGENT, ON_TOOL, PERMISSIONS, ROLE_PERMISSIONS, SCOPES, Role
from evidence.kinds import PAIR, Kind
from evidence.leaves import FORMS, LEAF_TYPES, VERSIONS, Leaf, LeafData
from evidence.models import EXPORT_TRANSITIONS, ExportState
from invocations.agent_runs.models import RUN_TRANSITIONS, AgentRunState
from invocations.chains.models import CHAIN_TRANSITIONS, ChainState
from invocations.models import TRANSITIONS as INVOCATION_TRANSITIONS
from invocations.models import State
from invocations.replays.models import REPLAY_TRANSITIONS, ReplayState
from kernel.problems import PlatformCode, collect_problem_classes
from registry.models import (
    DEPENDENCY_TRANSITIONS,
    INSTALLATION_TRANSITIONS,
    DependencyState,
    InstallationState,
    ToolState,
)
from registry.models import TRANSITIONS as TOOL_TRANSITIONS
from toolhub.management.reference.markdown import format_code, format_page, format_table
from toolhub.problem_catalogue import RETRIES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evidence.leaves.base import LeafPart

ROOT: Path = settings.BASE_DIR
PACKAGES = ("kernel", "evidence", "access", "registry", "llm", "invocations", "toolhub")
DJANGO_OPTIONS = {"--help", "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color"}
DJANGO_OPTIONS |= {"--force-color", "--skip-checks"}


def problems_page() -> str:
    listed = [cls for cls in collect_problem_classes() if cls.__module__.partition(".")[0] in PACKAGES]
    rows = [
        (
            format_code(cls.reason),
            format_code(cls.code),
            cls.status,
            format_code(cls.retryable) + (f" after {cls.retry_after_s} s" if cls.retry_after_s else ""),
            format_code(cls.error_type()),
            cls.title(),
        )
        for cls in listed
    ]
    used = {cls.code for cls in collect_problem_classes()}
    idle = [f"`{each}`" for each in PlatformCode if each not in used]
    return format_page(
        "Problems",
        "the problem classes",
        "Every refusal and failure that a caller can meet. `code` is the closed set of SPEC-6 and `INTERNAL` "
        "([RFC 0001](../rfc/0001-internal-code.md)); `reason` is what programs branch on; `error_type` is the older tool "
        "service's word, where it had one. A running hub has the same list at `/errors` for people and at `/api/v1/errors` for "
        "programs. One entry is at `/api/v1/errors/REASON`, the `type` of each answer; a browser gets the page from there.",
        format_table(("reason", "code", "HTTP", "retryable", "error_type", "meaning"), rows),
        "## `retryable`",
        format_table(
            ("value", "send the same call again?"), [(format_code(value), text) for value, text in RETRIES.items()]
        ),
        f"Codes of the closed set that no problem uses yet: {', '.join(idle)}." if idle else "",
        "## Why it happens, and what to do",
        "`remedy` in an answer is the smallest change that would help this time; where nobody knows it closer, it is what "
        "stands here.",
        format_table(
            ("reason", "why it happens", "what to do"),
            [(format_code(cls.reason), cls.cause, cls.cure) for cls in listed],
        ),
    )


def roles_page() -> str:
    on_tool, on_agent = (", ".join(format_code(name) for name in each) for each in (ON_TOOL, ON_AGENT))
    rows = [
        (format_code(name), text, *("yes" if name in ROLE_PERMISSIONS[role] else "" for role in Role))
        for name, text in PERMISSIONS.items()
    ]
    return format_page(
        "Roles, permissions and scopes",
        "access/roles.py",
        "## People",
        "A person has roles within a tenant. django-guardian holds a role's permissions as object permissions on the tenant, so "
        "one permission can also be given to one person alone. Nobody reviews their own submission or decides on their own "
        "request, whatever the role.",
        format_table(("permission", "allows", *(str(role.label) for role in Role)), rows),
        "## People and single things",
        f"An owner may give a person one of these on a single tool that the tenant publishes: {on_tool}; and on a single "
        f"agent: {on_agent}. It allows the same with that one and nothing with another, counts from the next request on, "
        "and ends when the person leaves the tenant. Keys that the person makes carry none of it.",
        "## Agents",
        "An API key carries scopes. They open an endpoint; which tools the agent may call is decided by its grants.",
        format_table(
            ("scope", "allows", "a new key has it"),
            [(format_code(name), text, "yes" if name in AGENT_SCOPES else "") for name, text in SCOPES.items()],
        ),
    )


def _diagram(transitions: Mapping[str, frozenset[str]], start: str) -> str:
    lines = ["stateDiagram-v2", f"    [*] --> {start}"]
    for state, following in transitions.items():
        lines += [f"    {state} --> {to}" for to in sorted(following)] or [f"    {state} --> [*]"]
    rows = [
        (format_code(state), ", ".join(format_code(to) for to in sorted(following)) or "final")
        for state, following in transitions.items()
    ]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n\n" + format_table(("state", "may become"), rows)


def states_page() -> str:
    return format_page(
        "States",
        "the TRANSITIONS of registry, access, evidence and invocations",
        "What each state may become. Another change is refused with `STATE.CONFLICT`; one that two processes try is made once.",
        "## Tool",
        "`enabled` with another approved version stays `enabled`: the version that calls get is replaced.",
        _diagram(TOOL_TRANSITIONS, ToolState.REGISTERED),
        "## Installation",
        "A tenant's own instance of a tool. `removed` comes back when the tool is installed again, with the settings that it had.",
        _diagram(INSTALLATION_TRANSITIONS, InstallationState.ENABLED),
        "## Dependencies of a version",
        "What a version needs of others. Resolved before its review, unless the manifest has a lock; built while somebody uses the "
        "version. `unresolved` and `failed` are tried again by hand.",
        _diagram(DEPENDENCY_TRANSITIONS, DependencyState.RESOLVING),
        "## Consent",
        "What has run out counts as `expired` from that moment, also before the sweeper has written it down.",
        _diagram(CONSENT_TRANSITIONS, ConsentState.REQUESTED),
        "## Request for a grant",
        _diagram(REQUEST_TRANSITIONS, RequestState.WAITING),
        "## Policy version",
        _diagram(POLICY_TRANSITIONS, PolicyState.DRAFT),
        "## Invocation",
        "`received` is passed through in one transaction and never stored. No run goes back from `running` to `queued` yet: that "
        "belongs to retries.",
        _diagram(INVOCATION_TRANSITIONS, State.RECEIVED),
        "## Chain",
        _diagram(CHAIN_TRANSITIONS, ChainState.RUNNING),
        "## Agent run",
        _diagram(RUN_TRANSITIONS, AgentRunState.RUNNING),
        "## Replay",
        _diagram(REPLAY_TRANSITIONS, ReplayState.QUEUED),
        "## Export of evidence",
        _diagram(EXPORT_TRANSITIONS, ExportState.QUEUED),
    )


def _writers() -> dict[str, list[str]]:
    """Kind name to the functions that name it."""
    found: dict[str, list[str]] = {}
    for file in sorted(
        path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts
    ):
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef) or file.name == "pages.py":
                continue
            for node in ast.walk(function):
                match node:
                    case ast.Attribute(value=ast.Name(id="Kind"), attr=name):
                        found.setdefault(name, []).append(f"{file.relative_to(ROOT)}: {function.name}")
    return found


def _leaf_table(cls: type[LeafPart], *, but: frozenset[str] = frozenset()) -> str:
    """The fields of a type of leaf; those that not every leaf has are marked."""
    rows = [
        (format_code(field.key), "" if field.always else "may be absent", field.doc)
        for field in cls.list_fields()
        if field.key not in but
    ]
    return format_table(("field", "", "what it says"), rows)


def _leaf_sections() -> list[str]:
    """What each kind says in ``data``, those that say the same together, in the order of the kinds."""
    kinds_of: dict[type[LeafData], list[Kind]] = {}
    for kind in Kind:
        if kind in LEAF_TYPES:
            kinds_of.setdefault(LEAF_TYPES[kind], []).append(kind)
    common = frozenset(field.key for field in LeafData.list_fields())
    found = []
    for cls, kinds in kinds_of.items():
        found += [f"### {', '.join(map(format_code, kinds))}", cls.__doc__ or "", _leaf_table(cls, but=common)]
    return found


def evidence_kinds_page() -> str:
    writers = _writers()
    rows = []
    for kind in Kind:
        where = (
            "<br>".join(format_code(each) for each in dict.fromkeys(writers.get(kind.name, [])))
            or "nothing writes it yet"
        )
        rows.append((format_code(kind.value), "one of the pair" if kind in PAIR else "", where))
    return format_page(
        "Kinds of facts",
        "evidence/kinds.py, evidence/leaves/ and the services that write them",
        "Names are never changed: they are in leaves that people may have verified. Each call has exactly one `invocation.began` "
        "and one `invocation.ended`, each dry run one `dry_run.began` and one `dry_run.ended`; a unique constraint holds that, and "
        "PostgreSQL refuses at COMMIT a call without its Begin, or an ended one without its End.",
        format_table(("kind", "", "written by"), rows),
        "## Leaves",
        FORMS,
        format_table(("version", "what is in it"), VERSIONS),
        "### Every leaf",
        _leaf_table(Leaf),
        "### `data` of any kind",
        _leaf_table(LeafData),
        *_leaf_sections(),
    )


def commands_page() -> str:
    rows = []
    for name, app in sorted(get_commands().items()):
        if app != "toolhub":
            continue
        command = load_command_class(app, name)
        parser = command.create_parser("manage.py", name)
        options = [action for action in parser._actions if not DJANGO_OPTIONS & set(action.option_strings)]
        said = "<br>".join(f"`{', '.join(action.option_strings) or action.dest}`: {action.help}" for action in options)
        rows.append((format_code(f"manage.py {name}"), command.help, said))
    targets = re.findall(r"^([a-z-]+):[^#\n]*## (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return format_page(
        "Commands",
        "the Makefile and the management commands",
        "## make",
        format_table(("target", "what it does"), [(format_code(f"make {name}"), text) for name, text in targets]),
        "## manage.py",
        "As `.venv/bin/python manage.py …`. Exit status: 0 good, 1 could not run, 2 ran and the answer is no.",
        format_table(("command", "what it does", "options"), rows),
    )
