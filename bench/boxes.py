"""What does a cold sandbox call cost, against `docker run --rm` of the same image in the same minute?

Rounds are interleaved, and the order within a round rotates, so that load from elsewhere falls on all alike.
"""

from __future__ import annotations

import io
import os
import subprocess
import time
import zipfile
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure, Times
from invocations.sandbox.base import Profile, SandboxCall, SandboxUnavailable, Status
from invocations.sandbox.docker import DockerSandbox
from sandbox.image import image_name

if TYPE_CHECKING:
    from collections.abc import Callable

PYTHON = "/usr/local/bin/sandbox-python"  # see sandbox/image/Dockerfile
PROGRAM = "print({'sum': sum(range(100))})"
TOOL = "def run():\n    return {'sum': sum(range(100))}\n"
SANDBOX, DEFAULT, CLOSED = "sandbox call, cold", "docker run --rm", "docker run --rm --network none"


def _package() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("trivial/__init__.py", "")
        archive.writestr("trivial/main.py", TOOL)
    return memory.getvalue()


def _run_docker(image: str, *flags: str) -> None:
    words = ["docker", "run", "--rm", *flags, "--entrypoint", PYTHON, image, "-I", "-S", "-B", "-c", PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode or "4950" not in done.stdout:
        raise CannotMeasure(f"`docker run` failed: {done.stderr.strip()}")


def measure(rounds: int) -> dict[str, Times]:
    """Milliseconds by name, ``rounds`` of each after one that does not count."""
    image = os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()
    box = DockerSandbox(image=image, instance=f"bench-{os.getpid()}")
    package, count = _package(), 0

    def sandbox_call() -> None:
        nonlocal count
        count += 1
        name = f"bench-{os.getpid()}-{count}"
        call = SandboxCall(
            name=name, package=package, module="trivial.main", entry="run", arguments=b"{}", context={"call_id": name}
        )
        outcome = box.run(Profile(), call)
        if outcome.status is not Status.OK or outcome.value != {"sum": 4950}:
            raise CannotMeasure(f"The sandbox call ended as {outcome.status}: {outcome.error_message}")

    ways: list[tuple[str, Callable[[], None]]] = [
        (SANDBOX, sandbox_call),
        (DEFAULT, lambda: _run_docker(image)),
        (CLOSED, lambda: _run_docker(image, "--network", "none")),
    ]
    found: dict[str, list[float]] = {name: [] for name, _ in ways}
    try:
        box.check()
        for number in range(rounds + 1):
            shift = number % len(ways)
            for name, way in ways[shift:] + ways[:shift]:
                begun = time.perf_counter()
                way()
                if number:
                    found[name].append((time.perf_counter() - begun) * 1000)
    except SandboxUnavailable as error:
        raise CannotMeasure(f"{error} Type:  make engine sandbox-image") from error
    finally:
        box.close()
    return {name: Times(name, ms) for name, ms in found.items()}
