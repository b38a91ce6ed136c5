"""Peer llm-sandbox: how fast the pool nearest to ours is, with the same function on the same machine.

It is installed from the package index into an environment of its own, and given our own image with two things added: the
interpreter where it looks for one, and the folder that it works in, so that it needs no network. A process of its own
makes its calls when it is told to, and says nothing but the answer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import venv
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure
from bench.sandbox_harness import PYTHON, get_image_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKAGE = "llm-sandbox[docker]==0.3.46"
_INSTALL_S = 300
# What it runs for a call is `mkdir -p` of a folder that is there, and the Python of an environment that it would make.
_VENV_PYTHON = "sandbox/.sandbox-venv/bin/python"
_DOCKERFILE = f"""
FROM {{image}}
USER 0
COPY root/ /
ENTRYPOINT []
CMD ["/{_VENV_PYTHON}", "-c", "import time; time.sleep(1e6)"]
"""
_SERVE = """
import sys
from llm_sandbox import SandboxBackend
from llm_sandbox.pool import PoolConfig, create_pool_manager
from llm_sandbox.pool.session import PooledSandboxSession

image, program = sys.argv[1:]
pool = create_pool_manager(
    backend=SandboxBackend.DOCKER, config=PoolConfig(max_pool_size=2, min_pool_size=2), lang="python", image=image,
    runtime_configs={"network_mode": "none"}, skip_environment_setup=True,
)
print("ready", flush=True)
for line in sys.stdin:
    with PooledSandboxSession(pool_manager=pool) as session:
        print(repr(session.run(program).stdout), flush=True)
pool.close()
"""


@contextmanager
def open_pool(program: str, check: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """A function that has the peer run the program once."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolhub-peer-")))
        python = create_environment(folder / "venv", PACKAGE)
        tag = stack.enter_context(_image(folder / "image"))
        process = stack.enter_context(_process([python, "-c", _SERVE, tag, program], folder / "log"))

        def say(word: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            if word:
                process.stdin.write(word + "\n")
                process.stdin.flush()
            answer: str = process.stdout.readline()
            if not answer:
                raise CannotMeasure(f"llm-sandbox has ended: {(folder / 'log').read_text()[-1000:]}")
            return answer

        say("")
        yield lambda: check(say("go"))


@contextmanager
def _process(words: list[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    with (
        log.open("w") as errors,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def _image(folder: Path) -> Iterator[str]:
    root = folder / "root"
    for place in ("usr/local/bin", str(Path(_VENV_PYTHON).parent)):
        (root / place).mkdir(parents=True)
    (root / _VENV_PYTHON).symlink_to(PYTHON)
    shutil.copy(shutil.which("true") or "/bin/true", root / "usr/local/bin/mkdir")
    (folder / "Dockerfile").write_text(_DOCKERFILE.format(image=get_image_name()))
    tag = f"toolhub-bench-peer:{os.getpid()}"
    done = subprocess.run(["docker", "build", "--quiet", "--tag", tag, str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(f"Its image could not be built:\n{done.stderr.strip()[-1000:]}")
    try:
        yield tag
    finally:
        subprocess.run(["docker", "image", "rm", "--force", tag], capture_output=True)


def create_environment(place: Path, package: str) -> str:
    """The Python of a new environment that has the package."""
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    try:
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", package], capture_output=True, text=True, timeout=_INSTALL_S
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(f"{package} could not be installed within {_INSTALL_S} s.") from error
    if done.returncode:
        raise CannotMeasure(f"{package} could not be installed:\n{done.stderr.strip()[-1000:]}")
    return python
