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
# Each runs once, so that both processes have about the same to do: these start hubs or boxes of their own, ...
ONLY_WITH_SQLITE = (
    "tests/attacks",
    "tests/contracts",
    "tests/egress",
    "tests/e2e/test_console_walk.py",
    "tests/e2e/test_doc_blocks.py",
    "tests/e2e/test_signing_in_walk.py",
)
# ... and these go through all roles and forms, whose pages other tests open on both databases.
ONLY_WITH_POSTGRESQL = (
    "tests/integration/access/test_access_table.py",
    "tests/integration/console/test_console_forms.py",
)


def run_tests(arguments: Sequence[str]) -> int:
    """Everything on PostgreSQL, and, unless some tests only were asked for, beside it the integration tests on SQLite as well."""
    needed = (*venv.needed_packages(), *services.needed_packages(), *peers.needed_packages())
    packages.ensure_packages(*needed, purpose="Running the tests")
    pytest = [str(venv.ensure_venv(dev=True)), "-m", "pytest"]
    with _environment() as env:
        if set(arguments) - {"-m", "", "-q", "-x"}:
            return _foreground([*pytest, *arguments], env)
        again = [
            *pytest,
            *arguments,
            "-p",
            "no:cacheprovider",
            "tests/integration",
            *ONLY_WITH_SQLITE,
            *_without(ONLY_WITH_POSTGRESQL),
        ]
        with _beside(again, env | {"TOOLHUB_TEST_DB": "sqlite"}) as second:
            first = _foreground([*pytest, *arguments, *_without(ONLY_WITH_SQLITE)], env)
            print_line("\nThe integration tests again, on SQLite, and the tests of boxes and of the console's pages:")
            return second() or first


def _without(tests: Sequence[str]) -> list[str]:
    return [f"--ignore={each}" for each in tests]


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
