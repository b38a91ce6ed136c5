"""Layers: what the browser and Node.js images have below our own part, and how that is made.

Such a layer is large and changes with its recipe only, so it is an image of its own that many images share. Its programs
come from Debian, Node.js from its makers; packages for Python are wheels of a lock, checked by their hashes.
"""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path

from sandbox.image import BROWSER, NODE, layer_name
from scripts.provision import debian, engine, node, venv
from scripts.provision.console import ROOT, SetupError, announce_step, run_program

HERE = ROOT / "sandbox" / "image"
LOCKS = {BROWSER: ROOT / venv.BROWSER_LOCK}
PYTHON = "3.11"  # Debian 12's
# From the newest that its C library takes to the oldest that packages still have.
TAGS = (
    "manylinux_2_36",
    "manylinux_2_34",
    "manylinux_2_28",
    "manylinux_2_24",
    "manylinux_2_17",
    "manylinux2014",
    "manylinux1",
)


def ensure_layer(kind: str, *, fresh: bool = False) -> str:
    """The layer's name; it is made if there is none, or if today's packages are wanted (``fresh``)."""
    name = layer_name(kind, ROOT)
    if fresh or not engine.find_image_id(name):
        with announce_step(f"making the layer {name} from Debian's packages", f"layer {name} made"):
            _make(kind, name)
    return name


def _make(kind: str, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="toolhub-layer-") as place:
        archive, wheels, programs = Path(place, "layer.tar"), Path(place, "wheels"), Path(place, "programs")
        wheels.mkdir()
        programs.mkdir()
        if kind in LOCKS:
            _download(LOCKS[kind], wheels)
        if kind == NODE:
            node.fetch_node(programs)
        debian.unpack_packages(
            debian.read_package_names(HERE / "packages.txt", HERE / f"{kind}.txt"),
            archive,
            by_hand="make sandbox-images",
            inside=[["python3", "-I", "-B", "/build/recipe/assemble.py", kind, "/rootfs"]],
            recipe=HERE,
            wheels=wheels,
            programs=programs,
        )
        run_program(["docker", "import", "--change", "LABEL toolhub.image=layer", str(archive), name])
    if not engine.find_image_id(name):
        raise SetupError(f"The engine took the layer but does not know {name}.")


def _download(lock: Path, wheels: Path) -> None:
    """For the image's Python, whatever this machine's is; no source distribution, so nothing of them is run."""
    pip = [
        str(venv.ensure_venv()),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--no-deps",
        "--require-hashes",
    ]
    target = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", PYTHON]
    for tag in TAGS:
        target += ["--platform", f"{tag}_{platform.machine()}"]
    remedy = "Is the Python package index reachable from here?"
    run_program([*pip, *target, "--dest", str(wheels), "--requirement", str(lock)], remedy=remedy)
