"""The compose file, built and run under a name of its own; nothing of it is left."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.provision.processes import free_port
from tests.compose import stand_ins
from tests.e2e.processes import ROOT, until
from tests.e2e.wire import remove_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator

BUILT_WITHIN_S, HEALTHY_WITHIN_S = 1500, 420
ENGINE = Path("/var/run/docker.sock")


@dataclass(frozen=True, slots=True)
class Composed:
    """The processes of the file; ``url`` is the web server's."""

    project: str
    env_file: Path
    env: dict[str, str]
    url: str

    def compose(self, *arguments: str, given: str = "", within_s: int = 300) -> str:
        program = shutil.which("docker-compose")
        assert program, "docker-compose is not installed: `make test` installs it (apt-get install docker-compose)."
        command = [program, "--project-name", self.project, "--env-file", str(self.env_file), *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.env, input=given, capture_output=True, text=True, check=False, timeout=within_s
        )
        assert done.returncode == 0, (
            f"{arguments} exited with {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        )
        return done.stdout

    def on_the_path(self, folder: Path) -> dict[str, str]:
        """The environment in which `docker compose`, as a person types it, is about this project."""
        engine, program = shutil.which("docker"), shutil.which("docker-compose")
        command = f'exec {program} --project-name {self.project} --env-file {self.env_file} "$@"'
        script = folder / "docker"
        script.write_text(f'#!/bin/sh\n[ "$1" = compose ] || exec {engine} "$@"\nshift\n{command}\n')
        script.chmod(0o755)
        return self.env | {"PATH": f"{folder}{os.pathsep}{self.env['PATH']}"}

    def manage(self, *arguments: str, service: str = "upkeep", given: str = "") -> str:
        return self.compose("exec", "-T", service, "python", "manage.py", *arguments, given=given)

    def states(self) -> dict[str, str]:
        """Of each service: whether it is healthy, or how it ended."""
        ids = self.compose("ps", "--quiet", "--all").split()
        raw = subprocess.run(["docker", "inspect", *ids], capture_output=True, text=True, check=True, timeout=60).stdout
        found = {}
        for each in json.loads(raw):
            state, name = each["State"], each["Config"]["Labels"]["com.docker.compose.service"]
            found[name] = state.get("Health", {}).get("Status") or f"{state['Status']} {state['ExitCode']}"
        return found


@pytest.fixture(scope="session")
def composed() -> Iterator[Composed]:
    token = secrets.token_hex(4)
    project, place = f"toolhub-test-{token}", Path(tempfile.mkdtemp(prefix="thc-", dir="/var/tmp"))
    place.chmod(0o711)
    url = f"127.0.0.1:{free_port()}"
    settings = {
        "TOOLHUB_SECRET_KEY": secrets.token_hex(32),
        "TOOLHUB_HUB_ROLE_PASSWORD": secrets.token_hex(12),
        "POSTGRES_PASSWORD": secrets.token_hex(12),
        "REDIS_PASSWORD": secrets.token_hex(12),
        "DOCKER_GID": str(ENGINE.stat().st_gid),
        "TOOLHUB_BIND": url,
        "TOOLHUB_PUBLIC_URL": f"http://{url}",
        "TOOLHUB_OWNER_NAME": "oona",
        "TOOLHUB_TENANT": "acme",
        "TOOLHUB_INSTANCE": project,
        "TOOLHUB_SANDBOX_RUN_DIR": str(place / "run"),
        "TOOLHUB_BOXD_DEPENDENCY_DIR": str(place / "deps"),
        "TOOLHUB_SANDBOX_IMAGE": f"toolhub-sandbox:{project}",
        "TOOLHUB_WORKER_CONCURRENCY": "3",
        "HUB_IMAGE": f"toolhub-hub:{project}",
        **stand_ins.images(),
    }
    env_file = place / ".env"
    env_file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    hub = Composed(project, env_file, env | {"DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"}, f"http://{url}")
    try:
        hub.compose("up", "--build", "--detach", within_s=BUILT_WITHIN_S)
        waited = {"web", "worker", "boxd", "upkeep", "keeper", "postgres", "redis"}
        try:
            until(
                lambda: {hub.states()[name] for name in waited} == {"healthy"},
                "all are healthy",
                within_s=HEALTHY_WITHIN_S,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{hub.states()}\n{hub.compose('logs', '--tail=40')}") from None
        yield hub
    finally:
        hub.compose("down", "--volumes", "--remove-orphans", "--timeout", "20")
        remove_boxes(project)
        for name in (settings["HUB_IMAGE"], settings["TOOLHUB_SANDBOX_IMAGE"]):
            subprocess.run(["docker", "image", "rm", name], capture_output=True, check=False, timeout=120)
        shutil.rmtree(place, ignore_errors=True)
