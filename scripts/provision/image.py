"""Are the sandbox images of these sources there, and if not, how are they built?"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

from sandbox.image import KINDS, ON_LAYER, PYTHON, build_context, image_name, layer_name
from scripts.provision import debian, engine, layers
from scripts.provision.console import ROOT, Trouble, ask, run, say, step
from scripts.provision.processes import only_one

OFFICIAL = "python:3.11-slim-bookworm"
DOCKERFILE = "sandbox/image/Dockerfile"
BASE_REPOSITORY = "toolhub-sandbox-base"
FIRST_WORD_S = 10.0  # a registry that can be reached says something by then
PULL_S = 300.0


def ensure(kind: str = PYTHON, *, fresh: bool = False) -> str:
    """Return the image's name; build it if no image has that name. ``fresh``: in any case, with today's packages."""
    engine.ensure()
    name = image_name(ROOT, kind)
    if fresh or not exists(name):
        with only_one(f"sandbox-image-{kind}"):
            if fresh or not exists(name):
                _build(kind, name, fresh=fresh)
    return name


def ensure_all(*, fresh: bool = False) -> list[str]:
    """The images of all kinds of tools, the Python image first."""
    return [ensure(kind, fresh=fresh and kind != PYTHON) for kind in KINDS]


def exists(name: str) -> bool:
    return bool(engine.image_id(name))


def _build(kind: str, name: str, *, fresh: bool) -> None:
    if kind == PYTHON:
        _run_build(name, DOCKERFILE, {"BASE": _base()})
        return
    with engine.replaced(layer_name(kind, ROOT)), engine.replaced(name):  # the second lies on the first
        layer = layers.ensure(kind, fresh=fresh)
        _run_build(name, ON_LAYER, {"BOX": ensure(), "LAYER": layer, "KIND": kind})


def _run_build(name: str, dockerfile: str, values: dict[str, str]) -> None:
    with step(f"building the sandbox image {name}", f"sandbox image {name} built"):
        _docker_build(name, dockerfile, values)
    ask(["docker", "image", "prune", "--force", "--filter", "label=toolhub.image=parts"])


def _docker_build(name: str, dockerfile: str, values: dict[str, str]) -> None:
    env = dict(os.environ)
    if ask(["docker", "buildx", "version"]) is None:
        env["DOCKER_BUILDKIT"] = "0"  # Debian's engine comes without the plugin that newer clients ask for
    with tempfile.TemporaryDirectory(prefix="toolhub-image-") as folder:
        for inside, source in (build_context(ROOT) | {dockerfile: ROOT / dockerfile}).items():
            target = Path(folder, inside)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        given = [word for key, value in values.items() for word in ("--build-arg", f"{key}={value}")]
        # --force-rm keeps no half-built containers; the name is given last, so a broken build leaves none with it.
        run(
            ["docker", "build", "--force-rm", "--file", f"{folder}/{dockerfile}", *given, "--tag", name, folder],
            env=env,
        )


def _base() -> str:
    """The official image if it is here or can be pulled, else the same Debian release made on this machine."""
    if exists(OFFICIAL):
        return OFFICIAL
    names = debian.names_in(ROOT / "sandbox" / "image" / "packages.txt")
    made = f"{BASE_REPOSITORY}:{debian.SUITE}-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:8]}"
    if exists(made):
        return made
    with step(f"asking for the base image {OFFICIAL}", "base image: asked"):
        pulled = pull(OFFICIAL)
    if pulled:
        return OFFICIAL
    say("           it cannot be pulled here: the same Debian release is put together from its packages instead")
    with step(f"making the base image {made}", f"base image {made} made"):
        _bootstrap(made, names)
    return made


def pull(name: str) -> bool:
    """Try to pull an image, and give up early on a registry that says nothing."""
    process = subprocess.Popen(
        ["docker", "pull", name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
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
    with tempfile.TemporaryDirectory(prefix="toolhub-base-") as folder:
        archive = Path(folder, "base.tar")
        debian.unpack(names, archive, by_hand="make sandbox-image")
        run(["docker", "import", "--change", "LABEL toolhub.image=base", str(archive), name])
        if not exists(name):
            raise Trouble(f"The engine took the base image but does not know {name}.")
