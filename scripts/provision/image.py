"""Is the sandbox image of these sources there, and if not, how is it built?"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

from sandbox.image import build_context, image_name
from scripts.provision import engine, packages
from scripts.provision.console import ROOT, Trouble, ask, run, say, step
from scripts.provision.processes import only_one

OFFICIAL = "python:3.11-slim-bookworm"
DOCKERFILE = "sandbox/image/Dockerfile"
SUITE = "bookworm"
BASE_REPOSITORY = "toolhub-sandbox-base"
FIRST_WORD_S = 10.0  # a registry that can be reached says something by then
PULL_S = 300.0


def ensure() -> str:
    """Return the image's name; build it if no image has that name."""
    engine.ensure()
    name = image_name(ROOT)
    if not exists(name):
        with only_one("sandbox-image"):
            if not exists(name):
                base = _base()
                with step(f"building the sandbox image {name}", f"sandbox image {name} built"):
                    _build(name, base)
    return name


def exists(name: str) -> bool:
    return ask(["docker", "image", "inspect", "--format", "{{.Id}}", name]) is not None


def _build(name: str, base: str) -> None:
    env = dict(os.environ)
    if ask(["docker", "buildx", "version"]) is None:
        env["DOCKER_BUILDKIT"] = "0"  # Debian's engine comes without the plugin that newer clients ask for
    with tempfile.TemporaryDirectory(prefix="toolhub-image-") as folder:
        for inside, source in build_context(ROOT).items():
            target = Path(folder, inside)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        # --force-rm keeps no half-built containers; the name is given last, so a broken build leaves none with it.
        run(
            [
                "docker",
                "build",
                "--force-rm",
                "--file",
                f"{folder}/{DOCKERFILE}",
                "--build-arg",
                f"BASE={base}",
                "--tag",
                name,
                folder,
            ],
            env=env,
        )
    ask(["docker", "image", "prune", "--force", "--filter", "label=toolhub.image=parts"])


def _base() -> str:
    """The official image if it is here or can be pulled, else the same Debian release made on this machine."""
    if exists(OFFICIAL):
        return OFFICIAL
    names = _package_names()
    made = f"{BASE_REPOSITORY}:{SUITE}-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:8]}"
    if exists(made):
        return made
    with step(f"asking for the base image {OFFICIAL}", "base image: asked"):
        pulled = _pull()
    if pulled:
        return OFFICIAL
    say("           it cannot be pulled here: the same Debian release is put together from its packages instead")
    mine = () if os.geteuid() == 0 else ("uidmap",)  # lets a user unpack files that belong to root
    packages.ensure("mmdebstrap", *mine, purpose="Making the sandbox image without a container registry")
    with step(f"making the base image {made}", f"base image {made} made"):
        _bootstrap(made, names)
    return made


def _package_names() -> list[str]:
    lines = (ROOT / "sandbox" / "image" / "packages.txt").read_text().splitlines()
    return sorted(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _pull() -> bool:
    """Try to pull the official image, and give up early on a registry that says nothing."""
    process = subprocess.Popen(
        ["docker", "pull", OFFICIAL], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        if select.select([process.stdout], [], [], FIRST_WORD_S)[0]:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=PULL_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return process.returncode == 0


def _bootstrap(name: str, names: list[str]) -> None:
    """Unpack the packages without running their scripts (7 s instead of 28): this is taken apart, it never boots."""
    keyring = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    if not keyring.exists():
        packages.ensure("debian-archive-keyring", purpose="Checking the signatures of Debian's packages")
    with tempfile.TemporaryDirectory(prefix="toolhub-base-") as folder:
        archive = Path(folder, "base.tar")
        bootstrap = [
            "mmdebstrap",
            "--variant=extract",
            f"--include={','.join(names)}",
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
            '--aptopt=Acquire::Languages "none"',
            SUITE,
            str(archive),
        ]
        remedy = f"Are Debian's packages ({SUITE}) reachable from here?"
        if os.geteuid() != 0:
            remedy += "\nIf this user may not make namespaces, type (as root):  make sandbox-image"
        run(bootstrap, remedy=remedy)
        run(["docker", "import", "--change", "LABEL toolhub.image=base", str(archive), name])
        if not exists(name):
            raise Trouble(f"The engine took the base image but does not know {name}.")
