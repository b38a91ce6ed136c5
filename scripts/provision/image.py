"""Images: whether the sandbox images of these sources are there, and how they are built if not."""

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
from scripts.provision.console import ROOT, SetupError, announce_step, print_line, query_program, run_program
from scripts.provision.processes import only_one

OFFICIAL = "python:3.11-slim-bookworm"
DOCKERFILE = "sandbox/image/Dockerfile"
BASE_REPOSITORY = "toolhub-sandbox-base"
FIRST_WORD_S = 10.0  # a registry that can be reached says something by then
PULL_S = 300.0


def ensure_image(kind: str = PYTHON, *, fresh: bool = False) -> str:
    """Return the image's name; build it if no image has that name. ``fresh``: in any case, with today's packages."""
    engine.ensure_engine()
    name = image_name(ROOT, kind)
    if fresh or not image_exists(name):
        with only_one(f"sandbox-image-{kind}"):
            if fresh or not image_exists(name):
                _build(kind, name, fresh=fresh)
    return name


def ensure_images(*, fresh: bool = False) -> list[str]:
    """The images of all kinds of tools, the Python image first."""
    return [ensure_image(kind, fresh=fresh and kind != PYTHON) for kind in KINDS]


def image_exists(name: str) -> bool:
    return bool(engine.find_image_id(name))


def _build(kind: str, name: str, *, fresh: bool) -> None:
    if kind == PYTHON:
        _run_build(name, DOCKERFILE, {"BASE": _base()})
        return
    with engine.replace_image(layer_name(kind, ROOT)), engine.replace_image(name):  # the second lies on the first
        layer = layers.ensure_layer(kind, fresh=fresh)
        _run_build(name, ON_LAYER, {"BOX": ensure_image(), "LAYER": layer, "KIND": kind})


def _run_build(name: str, dockerfile: str, values: dict[str, str]) -> None:
    with announce_step(f"building the sandbox image {name}", f"sandbox image {name} built"):
        _docker_build(name, dockerfile, values)
    query_program(["docker", "image", "prune", "--force", "--filter", "label=toolhub.image=parts"])


def _docker_build(name: str, dockerfile: str, values: dict[str, str]) -> None:
    env = dict(os.environ)
    if query_program(["docker", "buildx", "version"]) is None:
        env["DOCKER_BUILDKIT"] = "0"  # Debian's engine comes without the plugin that newer clients ask for
    with tempfile.TemporaryDirectory(prefix="toolhub-image-") as folder:
        for inside, source in (build_context(ROOT) | {dockerfile: ROOT / dockerfile}).items():
            target = Path(folder, inside)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        given = [word for key, value in values.items() for word in ("--build-arg", f"{key}={value}")]
        # --force-rm keeps no half-built containers; the name is given last, so a broken build leaves none with it.
        run_program(
            ["docker", "build", "--force-rm", "--file", f"{folder}/{dockerfile}", *given, "--tag", name, folder],
            env=env,
        )


def _base() -> str:
    """The official image if it is here or can be pulled, else the same Debian release made on this machine."""
    if image_exists(OFFICIAL):
        return OFFICIAL
    names = debian.read_package_names(ROOT / "sandbox" / "image" / "packages.txt")
    made = f"{BASE_REPOSITORY}:{debian.SUITE}-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:8]}"
    if image_exists(made):
        return made
    with announce_step(f"asking for the base image {OFFICIAL}", "base image: asked"):
        pulled = pull_image(OFFICIAL)
    if pulled:
        return OFFICIAL
    print_line("           it cannot be pulled here: the same Debian release is put together from its packages instead")
    with announce_step(f"making the base image {made}", f"base image {made} made"):
        _bootstrap(made, names)
    return made


def pull_image(name: str) -> bool:
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
        debian.unpack_packages(names, archive, by_hand="make sandbox-image")
        run_program(["docker", "import", "--change", "LABEL toolhub.image=base", str(archive), name])
        if not image_exists(name):
            raise SetupError(f"The engine took the base image but does not know {name}.")
