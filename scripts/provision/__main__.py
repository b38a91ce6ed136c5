"""Set-up commands: what can be asked of the set-up. `python3 -m scripts.provision COMMAND`; people use `make` (see the Makefile)."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING

from kernel.dotenv import load_dotenv
from scripts.provision import cleanup, engine, hub, image, tests, venv
from scripts.provision.checks import fix_style, run_checks
from scripts.provision.console import ROOT, SetupError

if TYPE_CHECKING:
    from types import FrameType

OF_THE_HUB = ("run", "engine", "sandbox-image", "sandbox-images", "clean")  # the others leave its settings alone


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m scripts.provision", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="set everything up and serve the hub")
    commands.add_parser("venv", help="the Python packages").add_argument("--dev", action="store_true")
    commands.add_parser("models", help="small models that answer in the hub itself")
    commands.add_parser("lock", help="resolve pyproject.toml; all that follows goes to uv")
    commands.add_parser("engine", help="a Docker engine that answers")
    commands.add_parser("sandbox-image", help="the sandbox image; prints its name")
    commands.add_parser("test", help="run pytest with its services; all that follows goes to pytest")
    commands.add_parser(
        "measure", help="run a module of bench/ with durable services; all that follows is its command line"
    )
    images = commands.add_parser(
        "sandbox-images", help="those for tools with a browser or in Node.js too; prints their names"
    )
    images.add_argument("--fresh", action="store_true", help="again, with today's Debian packages")
    testenv = commands.add_parser("testenv", help="the services of the tests: run COMMAND…, start, stop")
    testenv.add_argument("action", choices=("run", "start", "stop"))
    commands.add_parser("check", help="all static checks")
    commands.add_parser("fix", help="what the checks can repair themselves")
    commands.add_parser("clean", help="remove what was made here")
    # What follows `test`, `lock`, `measure` and `testenv run` is another program's, options too: not argparse's to look at.
    ours = {"test": 1, "lock": 1, "measure": 1, "testenv": 2}.get(arguments[0] if arguments else "", len(arguments))
    rest = arguments[ours:]
    asked = parser.parse_args(arguments[:ours])
    if asked.command in OF_THE_HUB:
        try:
            load_dotenv(ROOT)
        except ValueError as error:
            raise SetupError(str(error)) from error
    match asked.command:
        case "run":
            hub.run_hub()
        case "venv":
            venv.ensure_venv(dev=asked.dev)
        case "models":
            venv.ensure_local_models()
        case "lock":
            venv.resolve_locks(*rest)
        case "engine":
            engine.ensure_engine()
        case "sandbox-image":
            print(image.ensure_image())
        case "sandbox-images":
            print(*image.ensure_images(fresh=asked.fresh), sep="\n")
        case "test":
            return tests.run_tests(rest)
        case "measure":
            return tests.run_with_services([str(venv.ensure_venv(dev=True)), "-m", *rest], durable=True)
        case "testenv":
            return _testenv(asked.action, rest)
        case "check":
            return run_checks()
        case "fix":
            return fix_style()
        case "clean":
            cleanup.clean_checkout()
    return 0


def _testenv(action: str, rest: list[str]) -> int:
    if action == "run":
        if not rest:
            raise SetupError(
                "`testenv run` needs a command.", "For example:  scripts/testenv run .venv/bin/pytest tests/unit"
            )
        venv.ensure_venv(dev=True)
        return tests.run_with_services(rest)
    tests.start_testenv() if action == "start" else tests.stop_testenv()
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Being told to end is the same as a Ctrl-C: everything that was started is stopped on the way out."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  (this is where an older one is told)
        sys.exit(
            f"toolhub needs Python 3.11 or newer; this is {sys.version.split()[0]}. Type:  make PYTHON=python3.11 …"
        )
    (ROOT / "var").mkdir(mode=0o700, exist_ok=True)  # keys and data come to lie here
    venv.keep_bytecode()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupError as trouble:
        sys.exit(f"\n{trouble}\n")
    except KeyboardInterrupt:
        sys.exit(130)
