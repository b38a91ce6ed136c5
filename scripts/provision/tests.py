"""Tests: how they are run, with everything that they need and nothing left over."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING

from scripts.provision import image, packages, peers, services, venv
from scripts.provision.console import ROOT, print_line
from scripts.provision.processes import end_process, identify_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATIENCE_S = 60.0
# A test runs on both databases unless what it tests has no SQL, lock, JSON, trigger or row-level security of its own.
# Then it runs once: pages, forms and who may open them on PostgreSQL, with its walls, ...
ONLY_WITH_POSTGRESQL = (
    "tests/integration/access/budgets/test_budget_pages.py",
    "tests/integration/access/consents/test_approval_pages.py",
    "tests/integration/access/delegations/test_delegation_pages.py",
    "tests/integration/access/policies/test_policy_pages.py",
    "tests/integration/access/test_access_table.py",
    "tests/integration/console/test_console_access.py",
    "tests/integration/console/test_console_forms.py",
    "tests/integration/evidence/erasures/test_erasure_pages.py",
    "tests/integration/invocations/chains/test_chain_pages.py",
    "tests/integration/invocations/replays/test_replay_pages.py",
    "tests/integration/invocations/sandbox/test_sandbox_page.py",
    "tests/integration/registry/dependencies/test_dependency_pages.py",
    "tests/integration/registry/installations/test_installation_pages.py",
)
# ... and on SQLite wording, protocols, signatures, files, and what programs answer.
ONLY_WITH_SQLITE = (
    "tests/integration/access/issuers/test_issuer_tokens.py",
    "tests/integration/api/test_body_types.py",
    "tests/integration/api/test_problem_catalogue.py",
    "tests/integration/api/test_remedies_at_each_door.py",
    "tests/integration/console/test_asset_names.py",
    "tests/integration/console/test_assets.py",
    "tests/integration/console/test_noun_packages.py",
    "tests/integration/invocations/dispatch/test_dispatch_errors.py",
    "tests/integration/invocations/end/test_misbehaving_tools.py",
    "tests/integration/invocations/end/test_tool_error_codes.py",
    "tests/integration/invocations/mcp/test_mcp_endpoint.py",
    "tests/integration/kernel/test_request_bounds.py",
    "tests/integration/registry/dependencies/test_dependency_builds.py",
    "tests/integration/registry/dependencies/test_dependency_failures.py",
    "tests/integration/registry/discovery/test_tools_for_models.py",
    "tests/integration/toolhub/test_sdk_index.py",
)
# These start whole hubs, whose databases are their own, ...
HUBS = ("tests/compose", "tests/e2e")
# ... and these mostly wait: for boxes, for hubs that were killed or lose a service, for clients of others, for a browser.
BOXES = (
    "tests/attacks",
    "tests/crash",
    "tests/mcp_conformance",
    "tests/contracts",
    "tests/egress",
    "tests/e2e/test_console_walk.py",
    "tests/e2e/test_doc_blocks.py",
    "tests/e2e/test_json_logs.py",
    "tests/e2e/test_long_calls.py",
    "tests/e2e/test_production_shape.py",
    "tests/e2e/test_readiness.py",
    "tests/e2e/test_signing_in_walk.py",
)


def run_tests(arguments: Sequence[str]) -> int:
    """Unless some tests only were asked for, three processes with about the same to do: on two cores one has something to compute
    while another waits for PostgreSQL or for a box."""
    needed = (*venv.needed_packages(), *services.needed_packages(), *peers.needed_packages())
    packages.ensure_packages(*needed, purpose="Running the tests")
    pytest = [str(venv.ensure_venv(dev=True)), "-m", "pytest", *arguments]
    with _environment() as env:
        if set(arguments) - {"-m", "", "-q", "-x"}:
            return _foreground(pytest, env)
        on_sqlite = env | {"TOOLHUB_TEST_DB": "sqlite"}
        beside = [*pytest, "-p", "no:cacheprovider"]
        integration = [*beside, "tests/integration", *HUBS, *_without(ONLY_WITH_POSTGRESQL, BOXES)]
        with _beside(integration, on_sqlite) as second, _beside([*beside, *BOXES], on_sqlite) as third:
            codes = [_foreground([*pytest, *_without(ONLY_WITH_SQLITE, HUBS, BOXES)], env)]
            print_line("\nThe integration tests on SQLite, and those of whole hubs:")
            codes.append(second())
            print_line("\nThe tests of boxes, of hubs that are killed, and of the console in a browser:")
            codes.append(third())
            return next(filter(None, codes), 0)


def _without(*groups: Sequence[str]) -> list[str]:
    return [f"--ignore={each}" for group in groups for each in group]


@contextlib.contextmanager
def _beside(command: Sequence[str], env: dict[str, str]) -> Iterator[Callable[[], int]]:
    """A command that runs meanwhile. What is yielded waits for its end, prints what it said and returns its exit status."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        name = identify_process(process.pid)

        def finish() -> int:
            code = process.wait()
            output.seek(0)
            print(output.read().decode(errors="replace"), flush=True)
            return code

        try:
            yield finish
        finally:
            end_process(name, signal.SIGTERM)


def run_with_services(command: Sequence[str], *, durable: bool = False) -> int:
    """Run a command with the services' addresses in its environment; its exit status is ours."""
    with _environment(durable=durable) as env:
        return _foreground(command, env)


@contextlib.contextmanager
def _environment(*, durable: bool = False) -> Iterator[dict[str, str]]:
    name, *_ = image.ensure_images()
    with services.run_services(durable=durable) as env:
        yield _outer() | env | {"TOOLHUB_SANDBOX_IMAGE": name}


def _outer() -> dict[str, str]:
    """The environment without settings of a real hub that a shell may carry."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("TOOLHUB_") or key.startswith("TOOLHUB_TEST_")
    }


def start_testenv() -> None:
    """Services for a longer sitting. Their addresses are printed, and stay in .testenv/env to be sourced."""
    name, *_ = image.ensure_images()
    env = services.start_services() | {"TOOLHUB_SANDBOX_IMAGE": name}
    file = ROOT / ".testenv" / "env"
    file.parent.mkdir(exist_ok=True)
    file.touch(mode=0o600)
    file.write_text("".join(f"export {key}={json.dumps(value)}\n" for key, value in env.items()))
    print(file.read_text(), end="")
    print("# In a shell:  . .testenv/env     To end them:  scripts/testenv stop")


def stop_testenv() -> None:
    services.stop_services()
    (ROOT / ".testenv" / "env").unlink(missing_ok=True)


def _foreground(command: Sequence[str], env: dict[str, str]) -> int:
    """Wait for the command whatever happens: a Ctrl-C reaches it too, and it gets the time to clean up."""
    process = subprocess.Popen(command, env=env, cwd=ROOT)
    name = identify_process(process.pid)
    try:
        return process.wait()
    except KeyboardInterrupt:
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            return process.wait(PATIENCE_S)
        raise
    finally:
        end_process(name, signal.SIGTERM)
