"""Architecture: does the code keep the rules that a reviewer would otherwise have to remember?"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from access.authentication.sessions import PersonAuthentication
from access.models import (
    CONSENT_TRANSITIONS,
    POLICY_TRANSITIONS,
    REQUEST_TRANSITIONS,
    ConsentState,
    PolicyState,
    RequestState,
)
from access.roles import HUB_PERMISSIONS, PERMISSIONS, ROLE_PERMISSIONS, SCOPES
from evidence.kinds import Kind
from evidence.models import EXPORT_TRANSITIONS, ExportState
from invocations import models as invocations
from invocations.chains.models import CHAIN_TRANSITIONS, ChainState
from invocations.replays.models import REPLAY_TRANSITIONS, ReplayState
from kernel.http.actions import ActionEndpoint
from kernel.problems import PlatformCode, Problem, Retryable, collect_problem_classes
from registry import models as registry
from tests.support.routes import api_routes, console_routes, routes
from tests.support.source_files import read_docstring

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "kernel",
    "toolhub",
    "unitools",
    "evidence",
    "access",
    "registry",
    "llm",
    "invocations",
    "sandbox",
    "scripts",
    "bench",
    "tools",
)
PRODUCT = sorted(
    path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts
)
SERVICES = [
    path
    for path in PRODUCT
    if path.relative_to(ROOT).parts[0] in ("access", "registry", "invocations", "evidence")
    and "verify" not in path.relative_to(ROOT).parts
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


# Modules.


def test_there_is_code_to_look_at() -> None:
    assert len(PRODUCT) > 60
    assert len(SERVICES) > 30


def test_every_test_module_has_a_name_of_its_own() -> None:
    """pytest imports them by it."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in PRODUCT
        if path.name != "apps.py" and path.read_text().strip() and not read_docstring(path)
    ]

    assert silent == []


def test_imports_point_one_way() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_no_module_of_the_domain_is_imported_by_its_name_as_a_text() -> None:
    """What import-linter cannot see. Django's middleware is named so by the settings."""
    by_text = [
        name_of(path)
        for path in PRODUCT
        if "import_string(" in path.read_text() and name_of(path).split("/")[0] not in ("toolhub", "unitools")
    ]

    assert by_text == ["kernel/http/direct_routes.py"]


CARD_2 = {
    "django": "django",
    "djangorestframework": "rest_framework",
    "django-htmx": "django_htmx",
    "jsonschema": "jsonschema",
    "celery": "celery",
    "redis": "redis",
    "docker": "docker",
    "psycopg": "psycopg",
    "django-guardian": "guardian",
    "opentelemetry-instrumentation-django": "opentelemetry.instrumentation.django",
}
THROUGH_DJANGO = {"psycopg"}  # Django's PostgreSQL backend imports it; the settings name the pool that it brings


@cache
def imported() -> frozenset[str]:
    found: set[str] = set()
    for path in PRODUCT:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


@pytest.mark.req("CARD-2")
@pytest.mark.parametrize("package", CARD_2)
def test_every_package_of_the_design_card_is_declared_and_used(package: str) -> None:
    declared = (ROOT / "pyproject.toml").read_text()
    module = CARD_2[package]

    assert re.search(rf'"{re.escape(package)}(\[[a-z,-]+\])?>=', declared), package
    if package in THROUGH_DJANGO:
        assert '"pool"' in (ROOT / "toolhub" / "settings.py").read_text()
    else:
        assert any(name == module or name.startswith(module + ".") for name in imported()), package


# What people and programs see of a noun lies with the noun, and above everything else (pyproject.toml lets it import any domain
# module).
# The MCP door is such an edge as a whole.
EDGES = {"pages", "api", "forms", "serializers", "urls"}
DOMAIN = {"kernel", "evidence", "access", "registry", "llm", "invocations"}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(each) for each in PRODUCT}


def modules_imported_by(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & MODULES


def test_no_domain_module_imports_a_page_or_an_endpoint() -> None:
    domain = [
        path
        for path in PRODUCT
        if path.relative_to(ROOT).parts[0] in DOMAIN
        and path.stem not in EDGES
        and not {"templatetags", "mcp"} & set(path.parts)
    ]

    assert len(domain) > 300
    assert {
        f"{name_of(path)} imports {module}"
        for path in domain
        for module in modules_imported_by(path)
        if module.split(".")[0] in DOMAIN and module.split(".")[-1] in EDGES
    } == set()


# The shop's own words, which stand in manifests and in digests of packages.
NOUNS_IN_ING = {"tools/commerce/pricing.py", "tools/commerce/shipping.py"}


def test_modules_are_named_by_nouns() -> None:
    """A gerund says what is done and hides what there is: ``lease_heartbeat``, not ``minding``."""
    named = {*PRODUCT, *(path.parent for path in PRODUCT)}

    assert {name_of(path) for path in named if path.stem.endswith("ing")} - NOUNS_IN_ING == set()


def test_json_is_read_strictly_in_one_place_and_in_the_verifier_that_stands_alone() -> None:
    readers = {name_of(path) for path in PRODUCT if "object_pairs_hook" in path.read_text(encoding="utf-8")}

    assert readers == {"unitools/strict_json.py", "evidence/verify/strict.py"}


def test_test_folders_are_no_packages() -> None:
    """With an ``__init__.py``, pytest would take ``tests/unit/access`` for the product's ``access``."""
    rooms = [path for kind in ("unit", "integration") for path in (ROOT / "tests" / kind).rglob("__init__.py")]

    assert rooms == []


# Addresses.


def test_every_page_names_its_permission_or_that_it_is_public() -> None:
    unnamed = [route.path for route in routes() if route.api_class is None and not hasattr(route.view, "needs")]
    wrong = [
        route.path
        for route in routes()
        if route.api_class is None and route.needs is not None and route.needs not in {*PERMISSIONS, *HUB_PERMISSIONS}
    ]

    assert unnamed == []
    assert wrong == []


PUBLIC = {
    "sign_in", "sign_out", "switch_tenant", "theme", "set_language", "api_reference", "healthz", "readyz", "metrics",
    "api_manifest_schema", "sdk", "sdk_project", "sdk_file", "api_errors", "api_error", "problems", "problem",
    "global_checkpoint", "global_keys", "global_tile",
    "invitation", "api_oauth_token", "oauth_protected_resource", "oauth_protected_mcp", "oauth_authorization_server",
    "oauth_openid_configuration", "oauth_nothing_known", "oauth_nothing_known_of_mcp", "oauth_guessed_authorize",
    "oauth_protected_tenant_mcp", "oauth_nothing_known_of_tenant_mcp",
    "oauth_guessed_token", "oauth_guessed_register", "oauth_token", "oauth_revoke", "oauth_register",
    "oauth_hub_client",
    "my_server_accounts", "server_account", "server_account_begin", "server_account_connect", "server_account_callback",
    "server_account_agents", "server_account_end", "server_account_own_callback",
    "authorize", "my_connections", "display", "display_zone",  # which send who is not signed in to the sign-in
}  # fmt: skip


def test_what_is_public_is_on_a_short_list() -> None:
    """Pages of django-allauth are for people about themselves, and send others to the sign-in (test_sign_in)."""
    public = {route for route in routes() if route.api_class is None and route.needs is None}
    assert {route.name for route in public if not route.path.startswith("account/")} == PUBLIC


# What each person does with what is theirs alone, whatever their role.
OWN_OF_A_PERSON = {
    "api_server_accounts", "api_server_account_connect", "api_server_account_agents", "api_server_account_end",
}  # fmt: skip


def test_every_endpoint_names_its_scope() -> None:
    for route in api_routes():
        if route.api_class is None or route.name == "api_openapi":
            continue
        scope = route.api_class.required_scope
        methods = {
            method.upper() for method in ("get", "post", "put", "patch", "delete") if hasattr(route.api_class, method)
        }
        assert (set(scope) == methods) if isinstance(scope, dict) else scope in SCOPES, route.path
        if isinstance(scope, dict):
            assert set(scope.values()) - {None} <= set(SCOPES), route.path


def test_an_endpoint_that_takes_sessions_names_its_permission_and_one_that_takes_no_key_takes_sessions() -> None:
    for route in api_routes():
        scope = getattr(route.api_class, "required_scope", "")
        permission = getattr(route.api_class, "required_permission", {})
        by_method = permission if isinstance(permission, dict) else dict.fromkeys(route.methods, permission)
        takes_sessions = PersonAuthentication in getattr(route.api_class, "authentication_classes", [])
        assert (set(by_method) == set(route.methods)) if takes_sessions else not by_method, route.path
        assert set(by_method.values()) <= set(PERMISSIONS) or route.name in OWN_OF_A_PERSON, route.path
        assert takes_sessions or not isinstance(scope, dict) or None not in scope.values(), route.path


def test_every_action_gives_its_service_what_that_takes() -> None:
    """The address and the body name the service's parameters; the type checker does not see it."""
    actions = [
        (route, route.api_class)
        for route in api_routes()
        if route.api_class is not None and issubclass(route.api_class, ActionEndpoint)
    ]
    assert actions
    for route, action in actions:
        body = action.body().fields if action.body else {}
        named = [*(action.renamed.get(name, name) for name in [*route.takes, *body]), "by"]
        assert len(named) == len(set(named)), f"{route.path}: the body must not stand in for the address"
        inspect.signature(action.service).bind(**dict.fromkeys(named))


# For programs, which send no cookie that would decide anything.
OF_OAUTH = {
    "oauth_token", "oauth_revoke", "oauth_register", "oauth_nothing_known", "oauth_nothing_known_of_mcp",
    "oauth_nothing_known_of_tenant_mcp", "oauth_guessed_authorize", "oauth_guessed_token", "oauth_guessed_register",
}  # fmt: skip


def test_no_page_is_exempt_from_the_protection_against_forgery() -> None:
    assert {route.name for route in console_routes() if getattr(route.view, "csrf_exempt", False)} == OF_OAUTH


def test_every_address_has_a_name_of_its_own() -> None:
    names = [route.name for route in routes()]

    assert all(names)
    assert len(names) == len(set(names))


def test_every_permission_and_scope_is_asked_for_somewhere() -> None:
    """One that nothing asks for would look like a control and be none."""
    text = "\n".join(path.read_text() for path in PRODUCT if path.name != "roles.py")
    held = set().union(*ROLE_PERMISSIONS.values())

    assert held == set(PERMISSIONS)
    assert [scope for scope in SCOPES if f'"{scope}"' not in text] == []


# Problems, states, kinds.


def test_every_problem_says_what_is_the_case() -> None:
    for cls in collect_problem_classes():
        assert cls.__doc__, cls
        assert cls.title().endswith("."), cls.title()
        assert re.fullmatch(r"[A-Z]+\.[A-Z_]+", cls.reason), cls.reason
        assert isinstance(cls.code, PlatformCode), cls
        assert isinstance(cls.retryable, Retryable), cls
        assert 400 <= cls.status < 600, cls
        assert cls.__module__.endswith(".problems"), cls


def test_every_problem_says_why_it_happens_and_what_to_do() -> None:
    for cls in collect_problem_classes():
        for name in ("cause", "cure"):
            text = vars(cls).get(name, "")
            assert re.fullmatch(r"[A-Z`].{10,240}\.", text), f"{cls.__name__}.{name}: one or two sentences for people"
        assert len({cls.title(), cls.cause, cls.cure}) == 3, cls


DECIDING = (
    "access/budgets/lines.py",
    "access/budgets/rate_limits.py",
    "access/grants/matcher.py",
    "invocations/decide/looks.py",
    "invocations/decide/rules.py",
    "registry/tools/callability.py",
    "kernel/principal.py",
)


@pytest.mark.req("TOOLS-24")
def test_every_refusal_of_a_call_says_the_smallest_change_that_would_allow_it() -> None:
    """Others say what cures any problem of their class."""
    classes = {cls.__name__ for cls in collect_problem_classes()}
    made = [
        (f"{name}:{call.lineno}", {keyword.arg for keyword in call.keywords})
        for name in DECIDING
        for call in ast.walk(parsed(ROOT / name))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in classes
    ]

    assert len(made) > 20
    assert [where for where, named in made if "remedy" not in named] == []


def test_every_problem_class_has_a_reason() -> None:
    pending, found = [Problem], []
    while pending:
        for cls in pending.pop().__subclasses__():
            pending.append(cls)
            found.append(cls)

    assert [cls for cls in found if not cls.reason and cls.__module__.endswith(".problems")] == []


def test_every_problem_is_on_the_reference_page() -> None:
    page = (ROOT / "docs" / "reference" / "problems.md").read_text()

    assert [cls.reason for cls in collect_problem_classes() if cls.reason not in page] == []


@pytest.mark.parametrize(
    ("transitions", "states"),
    [
        (invocations.TRANSITIONS, invocations.State),
        (registry.TRANSITIONS, registry.ToolState),
        (registry.INSTALLATION_TRANSITIONS, registry.InstallationState),
        (registry.DEPENDENCY_TRANSITIONS, registry.DependencyState),
        (CONSENT_TRANSITIONS, ConsentState),
        (REQUEST_TRANSITIONS, RequestState),
        (CHAIN_TRANSITIONS, ChainState),
        (POLICY_TRANSITIONS, PolicyState),
        (REPLAY_TRANSITIONS, ReplayState),
        (EXPORT_TRANSITIONS, ExportState),
    ],
)
def test_transitions_cover_every_state_and_lead_to_known_ones(
    transitions: dict[str, frozenset[str]], states: Any
) -> None:
    assert set(transitions) == set(states)
    assert set().union(*transitions.values()) <= set(states)


@pytest.mark.parametrize(
    ("transitions", "first"),
    [
        (invocations.TRANSITIONS, invocations.State.RECEIVED),
        (CHAIN_TRANSITIONS, ChainState.RUNNING),
        (registry.TRANSITIONS, registry.ToolState.REGISTERED),
        (registry.INSTALLATION_TRANSITIONS, registry.InstallationState.ENABLED),
        (registry.DEPENDENCY_TRANSITIONS, registry.DependencyState.RESOLVING),
        (CONSENT_TRANSITIONS, ConsentState.REQUESTED),
        (REQUEST_TRANSITIONS, RequestState.WAITING),
        (POLICY_TRANSITIONS, PolicyState.DRAFT),
        (REPLAY_TRANSITIONS, ReplayState.QUEUED),
        (EXPORT_TRANSITIONS, ExportState.QUEUED),
    ],
)
def test_every_state_can_be_reached(transitions: dict[str, frozenset[str]], first: str) -> None:
    reached, pending = {first}, [first]
    while pending:
        for state in transitions[pending.pop()] - reached:
            reached.add(state)
            pending.append(state)

    assert reached == set(transitions)


def test_every_kind_of_fact_is_written_somewhere() -> None:
    named = {
        name for path in PRODUCT if path.name != "kinds.py" for name in re.findall(r"\bKind\.(\w+)", path.read_text())
    }

    assert [kind.name for kind in Kind if kind.name not in named] == []
    assert all(re.fullmatch(r"[a-z_]+\.[a-z_]+", kind) for kind in Kind)
