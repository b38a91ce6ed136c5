"""Tests: how they are run, with everything that they need and nothing left over."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from scripts.provision import image, packages, parts, peers, services, venv
from scripts.provision.console import ROOT
from scripts.provision.processes import end_process, identify_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_S = 60.0


def run_tests(arguments: Sequence[str]) -> int:
    """All of them in parts (:mod:`scripts.provision.parts`), unless some only were asked for."""
    needed = (*venv.needed_packages(), *services.needed_packages(), *peers.needed_packages())
    packages.ensure_packages(*venv.needed_packages(), purpose="Making a virtual environment")
    # The one waits for its packages while the other unpacks.
    with ThreadPoolExecutor(1) as beside, contextlib.ExitStack() as stack:
        installed = beside.submit(packages.ensure_packages, *needed, purpose="Running the tests")

        def start_services() -> dict[str, str]:
            installed.result()
            return stack.enter_context(services.run_services())

        pytest = [str(venv.ensure_venv(dev=True)), "-m", "pytest", *arguments]
        if set(arguments) - {"-m", "", "-q", "-x"}:
            return _foreground(pytest, _outer() | start_services() | _sandbox())
        beside.submit(peers.fetch_ahead)  # once the packages are there, npm among them
        return parts.run_parts(pytest, _outer(), start_services, _sandbox, whole="" in arguments)


def run_with_services(command: Sequence[str], *, durable: bool = False) -> int:
    """Run a command with the services' addresses in its environment; its exit status is ours."""
    with _environment(durable=durable) as env:
        return _foreground(command, env)


@contextlib.contextmanager
def _environment(*, durable: bool = False) -> Iterator[dict[str, str]]:
    sandbox = _sandbox()
    with services.run_services(durable=durable) as env:
        yield _outer() | env | sandbox


def _sandbox() -> dict[str, str]:
    """The images of the sandbox, which are built if they are not there; the setting that names the usual one."""
    name, *_ = image.ensure_images()
    return {"TOOLHUB_SANDBOX_IMAGE": name}


def _outer() -> dict[str, str]:
    """The environment without settings of a real hub that a shell may carry."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("TOOLHUB_") or key.startswith("TOOLHUB_TEST_")
    }


def start_testenv() -> None:
    """Services for a longer sitting. Their addresses are printed, and stay in .testenv/env to be sourced."""
    env = _sandbox() | services.start_services()
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
