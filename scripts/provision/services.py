"""Services: where the tests get PostgreSQL, Redis, Chromium and the Docker engine from.

Every `make test` has a PostgreSQL and a Redis of its own, on free ports of the loopback interface, behind a password,
in a directory of its own. They end with it. If it was cut off (SIGKILL, power), the next one finds the directory, sees
that its owner is gone, and ends what is left. Neither a service of the machine nor another `make test` is ever touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.provision import engine, packages
from scripts.provision.console import ROOT, SetupError, announce_step, print_line, query_program
from scripts.provision.processes import end_process, find_pid, free_port, identify_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Draws and runs pages as Chromium does, without a window's frame: a third less of a processor for the same pages.
BROWSERS = ("chromium-headless-shell", "chromium")
FOREIGN = ("golang-go", "golang-golang-x-mod-dev")  # verify our proofs with code that is not ours (tests/foreign)
TOKENS = ("softhsm2",)  # keys that never leave a PKCS#11 token (tests/support/soft_tokens.py)
NEEDED = ("postgresql", "redis-server", "gettext", "docker-compose", "fonts-noto-cjk", *FOREIGN, *TOKENS)
START_S = 30.0
KEPT = "kept"  # the directory of `testenv start`: nobody owns it, `testenv stop` ends it
LOCALE = "C.UTF-8"
POSTGRES_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "400",
    "log_min_messages": "warning",
}
# A test database may be lost with the machine, so nothing waits for the disk. What is measured does wait, as a hub in use does.
# And nothing is compiled for a database that holds next to nothing: that took a tenth of the server's time.
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "jit": "off"}


def get_runs_folder() -> Path:
    """Where the directories of all runs of this checkout are.

    PostgreSQL refuses to run as root, and its own user may not look into a checkout that is private to root: the runs
    of root are under /var/lib.
    """
    if os.geteuid() != 0:
        return ROOT / ".testenv" / "runs"
    return Path("/var/lib/toolhub-testenv") / hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]


def needed_packages() -> list[str]:
    return [*NEEDED, *_needed_browser(), *engine.needed_packages()]


def _needed_browser() -> list[str]:
    """The first that this system's packages have."""
    if os.environ.get("TOOLHUB_TEST_CHROMIUM") or shutil.which(BROWSERS[0]):
        return []
    return [next((name for name in BROWSERS if packages.is_known(name)), BROWSERS[-1])]


def install_services() -> str:
    """Install what is missing; return the path of the browser."""
    packages.ensure_packages(*needed_packages(), purpose="Running the tests")
    engine.ensure_engine()
    chromium = os.environ.get("TOOLHUB_TEST_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), "")
    if not chromium:
        raise SetupError(
            "There is no Chromium.", "Name a Chromium or Chrome:  export TOOLHUB_TEST_CHROMIUM=/path/to/it"
        )
    return chromium


@contextlib.contextmanager
def run_services(*, durable: bool = False) -> Iterator[dict[str, str]]:
    """Services for the time of the ``with`` block; yields the environment variables that lead to them.

    ``durable``: PostgreSQL with the settings it comes with, so that a commit waits for the disk.
    """
    chromium = install_services()
    sweep_runs()
    folder = get_runs_folder() / identify_process(os.getpid()).replace(" ", "-")
    try:
        with announce_step("starting PostgreSQL and Redis for the tests", "PostgreSQL and Redis for the tests started"):
            env = _start(folder, chromium=chromium, durable=durable)
        yield env
    finally:
        with announce_step("stopping PostgreSQL and Redis", "PostgreSQL and Redis stopped"):
            stop_and_remove(folder)


def start_services() -> dict[str, str]:
    """Start services that stay until :func:`stop_services`; the same ones if they already run."""
    chromium = install_services()
    sweep_runs()
    folder = get_runs_folder() / KEPT
    with contextlib.suppress(OSError, ValueError):
        if all(find_pid(name) for name in _read(folder, "processes")):
            env: dict[str, str] = _read(folder, "env")
            return env
    stop_and_remove(folder)
    with announce_step("starting PostgreSQL and Redis", "PostgreSQL and Redis started"):
        return _start(folder, chromium=chromium)


def stop_services() -> None:
    with announce_step("stopping PostgreSQL and Redis", "PostgreSQL and Redis stopped"):
        stop_and_remove(get_runs_folder() / KEPT)
    sweep_runs()


def find_test_runs() -> list[int]:
    """The processes of the test runs of this checkout."""
    return [pid for folder in _runs() if (pid := _owner(folder))]


def _runs() -> list[Path]:
    return (
        [folder for folder in get_runs_folder().iterdir() if folder.name != KEPT] if get_runs_folder().is_dir() else []
    )


def _owner(folder: Path) -> int | None:
    return find_pid(folder.name.replace("-", " "))


def sweep_runs() -> None:
    """End and remove what a run left that could not clean up after itself."""
    for folder in _runs():
        if _owner(folder) is None:
            print_line(f"           ending what a test run that was cut off left in {folder}")
            stop_and_remove(folder)


def _start(folder: Path, *, chromium: str, durable: bool = False) -> dict[str, str]:
    """The folder is named after its owner, so there is no moment at which it has none."""
    folder.mkdir(parents=True)
    for directory in (folder, get_runs_folder(), get_runs_folder().parent):
        directory.chmod(0o711)  # PostgreSQL's user passes through, nobody looks around
    password = secrets.token_urlsafe(18)
    started: list[str] = []
    _write(folder, "processes", started)
    postgres_port = _start_postgres(folder, password, started, POSTGRES_SETTINGS | ({} if durable else NOT_DURABLE))
    redis_port = _start_redis(folder, password, started)
    env = {
        "TOOLHUB_TEST_DATABASE_URL": f"postgresql://toolhub:{password}@127.0.0.1:{postgres_port}/toolhub",
        "TOOLHUB_TEST_REDIS_URL": f"redis://default:{password}@127.0.0.1:{redis_port}/0",
        "TOOLHUB_TEST_REDIS_SERVER": shutil.which("redis-server") or "redis-server",
        "TOOLHUB_TEST_CHROMIUM": chromium,
        "TOOLHUB_DATA_DIR": str(folder / "data"),  # never the data of a hub that runs
    }
    _write(folder, "env", env)
    return env


def postgres_programs() -> Path:
    """The newest PostgreSQL of the machine. Debian keeps its server programs out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    raise SetupError("There is no PostgreSQL server (no initdb).", "Type:  sudo apt-get install postgresql")


def _start_postgres(folder: Path, password: str, started: list[str], given: dict[str, str]) -> int:
    programs, data, log = postgres_programs(), folder / "postgres", folder / "postgres.log"
    password_file = folder / "password"
    password_file.write_text(password)
    password_file.chmod(0o600)
    data.mkdir(mode=0o700)
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = {"user": "postgres", "group": "postgres", "extra_groups": []}
        shutil.chown(data, "postgres", "postgres")
        shutil.chown(password_file, "postgres", "postgres")
    initdb = [
        str(programs / "initdb"),
        f"--pgdata={data}",
        "--username=toolhub",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        f"--locale={LOCALE}",
        "--no-sync",
    ]
    with log.open("wb") as output:
        made = subprocess.run(initdb, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", **account)
    password_file.unlink()
    if made.returncode:
        raise SetupError(f"PostgreSQL's initdb failed:\n{log.read_text(errors='replace')}")
    port = free_port()
    settings = [f"--{name}={value}" for name, value in given.items()]
    _launch([str(programs / "postgres"), "-D", str(data), f"--port={port}", *settings], log, started, folder, account)
    psql = [str(programs / "psql"), f"postgresql://toolhub@127.0.0.1:{port}/postgres", "-qc", "CREATE DATABASE toolhub"]
    _wait("PostgreSQL", started[-1], log, lambda: query_program(psql, env={"PGPASSWORD": password}) is not None)
    return port


def _start_redis(folder: Path, password: str, started: list[str]) -> int:
    log, port = folder / "redis.log", free_port()
    config = folder / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(f'bind 127.0.0.1\nport {port}\nsave ""\nappendonly no\ndir {folder}\nrequirepass {password}\n')
    _launch(["redis-server", str(config)], log, started, folder, {})
    ping = ["redis-cli", "-p", str(port), "ping"]
    _wait("Redis", started[-1], log, lambda: "PONG" in (query_program(ping, env={"REDISCLI_AUTH": password}) or ""))
    return port


def _launch(command: list[str], log: Path, started: list[str], folder: Path, account: dict[str, Any]) -> None:
    """Start a service in a session of its own: a Ctrl-C reaches the tests only, and we end the service after them."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True, **account
        )
    started.append(identify_process(process.pid))
    _write(folder, "processes", started)


def _wait(name: str, process: str, log: Path, answers: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_S
    while not answers():
        if find_pid(process) is None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise SetupError(f"{name} for the tests did not start:\n{tail}")
        time.sleep(0.05)


def stop_and_remove(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        for process in reversed(_read(folder, "processes")):
            end_process(process, signal.SIGINT, signal.SIGQUIT)  # to PostgreSQL: fast, then immediate shutdown
    shutil.rmtree(folder, ignore_errors=True)


def _read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def _write(folder: Path, name: str, value: object) -> None:
    file = folder / name
    file.touch(mode=0o600)
    file.write_text(json.dumps(value))
