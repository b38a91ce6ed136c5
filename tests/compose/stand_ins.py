"""Stand-ins for the images that docker-compose.yml takes from a registry, made of Debian's packages where none answers."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from scripts.provision import debian, engine, image, packages
from scripts.provision.console import ROOT, run_program
from scripts.provision.processes import only_one

HERE = Path(__file__).parent
REPOSITORY = "toolhub-compose-base"
OFFICIAL = {
    "PYTHON_IMAGE": "python:3.11-slim-bookworm",
    "POSTGRES_IMAGE": "postgres:17-bookworm",
    "REDIS_IMAGE": "redis:7-bookworm",
}
PACKAGES = ("python3-venv", "postgresql", "redis-server")
ROOTS = Path("/etc/ssl/certs/ca-certificates.crt")  # whom this machine trusts, so do builds on it
PIP = f"[global]\ncert = {ROOTS}\n"


def images() -> dict[str, str]:
    """Nothing where the official images can be had; otherwise what to set for `docker-compose`."""
    if all(image.image_exists(name) or image.pull_image(name) for name in OFFICIAL.values()):
        return {}
    with only_one("compose-base"):
        base = _base()
        return {"PYTHON_IMAGE": base, "REDIS_IMAGE": base, "POSTGRES_IMAGE": _postgres(base)}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _base() -> str:
    """Debian with Python, PostgreSQL and Redis, with its packages' scripts run, as programs in it count on."""
    wanted = sorted({*PACKAGES, *debian.read_package_names(ROOT / "sandbox" / "image" / "packages.txt")})
    name = f"{REPOSITORY}:{debian.SUITE}-{_digest(*wanted, ROOTS.read_text())}"
    if image.image_exists(name):
        return name
    packages.ensure_packages("mmdebstrap", purpose="Making images without a container registry")
    with tempfile.TemporaryDirectory(prefix="toolhub-compose-") as folder:
        archive, pip = Path(folder, "base.tar"), Path(folder, "pip.conf")
        pip.write_text(PIP)
        options = ["--variant=minbase", f"--include={','.join(wanted)}", '--aptopt=Acquire::Languages "none"']
        options += ['--aptopt=APT::Install-Recommends "false"']
        options += [f"--customize-hook=copy-in {ROOTS} /etc/ssl/certs", f"--customize-hook=copy-in {pip} /etc"]
        run_program(
            ["mmdebstrap", *options, debian.SUITE, str(archive)], remedy="Are Debian's packages reachable from here?"
        )
        run_program(["docker", "import", "--change", "LABEL toolhub.image=base", str(archive), name])
    assert engine.find_image_id(name)
    return name


def _postgres(base: str) -> str:
    files = [HERE / "postgres.Dockerfile", HERE / "postgres-entry"]
    name = f"toolhub-compose-postgres:{_digest(base, *(file.read_text() for file in files))}"
    if not image.image_exists(name):
        command = ["docker", "build", "--force-rm", "--file", str(files[0]), "--build-arg", f"BASE={base}"]
        env = {**os.environ, "DOCKER_BUILDKIT": "0"}
        subprocess.run([*command, "--tag", name, str(HERE)], env=env, check=True, capture_output=True, timeout=300)
    return name
