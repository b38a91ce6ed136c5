"""Deployment files: do the files that describe a deployment agree with the code and with the promises made about them?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel.variables import BOXD, EVERY, INIT, KEEPER, UPKEEP, WEB, WORKER
from sandbox.image import ON_LAYER, build_context
from scripts.provision import venv, wheels
from tests.support.source_files import list_source_files
from toolhub.celery import worker_roles
from toolhub.loops import select_loops
from toolhub.variables import VARIABLES

ROOT = Path(__file__).resolve().parents[2]
SECRETS = ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "TOOLHUB_SECRET_KEY", "DOCKER_GID", "TOOLHUB_HUB_ROLE_PASSWORD")
ENGINE_SOCKET = "/var/run/docker.sock"


# Which role's settings a service of the file must get.
ROLES = {"web": WEB, "worker": WORKER, "upkeep": UPKEEP, "keeper": KEEPER, "migrate": INIT}
# What the file decides, whatever .env says: it holds of containers only.
DECIDED = {
    *("TOOLHUB_DATABASE_URL", "TOOLHUB_REDIS_URL", "TOOLHUB_DATA_DIR", "TOOLHUB_BIND", "TOOLHUB_PROBE_BIND"),
    *("TOOLHUB_SIGNING_KEY_FILE", "TOOLHUB_KEPT_CHECKPOINT_FILE", "TOOLHUB_DEPENDENCY_DIR"),
}


class StrictLoader(yaml.SafeLoader):
    """As Compose v2 reads: a key that stands twice is a mistake, not the later of the two."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if key.value != "<<"]
        twice = {name for name in names if names.count(name) > 1}
        assert not twice, f"{node.start_mark}: {twice}"
        return super().construct_mapping(node, deep=deep)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    document = yaml.load((ROOT / "docker-compose.yml").read_text(), StrictLoader)
    found: dict[str, Any] = document["services"]
    return found


def test_no_key_of_the_compose_file_stands_twice() -> None:
    assert yaml.load((ROOT / "docker-compose.yml").read_text(), StrictLoader)
    with pytest.raises(AssertionError, match="'a'"):
        yaml.load("b: {a: 1, a: 2}", StrictLoader)


@pytest.mark.parametrize("service", ROLES)
def test_every_setting_of_its_role_reaches_a_service(service: str, services: dict[str, Any]) -> None:
    handed = services[service]["environment"]
    wanted = {
        row.name for row in VARIABLES.rows.values() if not row.elsewhere and {ROLES[service], EVERY} & set(row.roles)
    } | {row.name for row in VARIABLES.rows.values() if row.roles == ("OpenTelemetry",)}

    assert wanted - handed.keys() == set()
    given = {name: value for name, value in handed.items() if value is not None and name not in DECIDED}
    assert {name for name, value in given.items() if f"${{{name}" not in value} == set(), "what .env says is dropped"


@pytest.mark.parametrize("service", ROLES)
def test_no_service_gets_a_secret_that_is_nothing_to_it(service: str, services: dict[str, Any]) -> None:
    foreign = {
        row.name for row in VARIABLES.rows.values() if row.secret and not {ROLES[service], EVERY} & set(row.roles)
    }

    assert foreign & services[service]["environment"].keys() == set()


def test_what_stands_in_the_env_file_is_handed_on_and_the_rest_stays_at_its_default() -> None:
    done = compose("config", given="TOOLHUB_LOG_LEVEL=DEBUG\nTOOLHUB_OIDC_CLIENT_SECRET=abc\nTOOLHUB_LEASE_S=33\n")
    composed = yaml.safe_load(done.stdout)["services"]

    assert composed["keeper"]["environment"]["TOOLHUB_LOG_LEVEL"] == "DEBUG"
    assert composed["worker"]["environment"]["TOOLHUB_LEASE_S"] == "33"
    assert composed["web"]["environment"]["TOOLHUB_OIDC_CLIENT_SECRET"] == "abc"
    assert composed["web"]["environment"].get("TOOLHUB_WEB_THREADS") is None


def test_the_web_server_is_the_one_that_bounds_what_comes_before_a_body(services: dict[str, Any]) -> None:
    dockerfile = (ROOT / "docker" / "hub.Dockerfile").read_text()

    assert services["web"]["command"] == ["python", "manage.py", "serve"]
    assert dockerfile.splitlines()[-1] == 'CMD ["python", "manage.py", "serve"]'


@pytest.mark.parametrize("service", ("web", "worker", "upkeep", "keeper"))
def test_a_health_check_asks_the_process_itself_and_loads_nothing(service: str, services: dict[str, Any]) -> None:
    *command, what, _ = services[service]["healthcheck"]["test"]

    assert (command, what) == (["CMD", "python", "-ISB", "toolhub/probes/client.py"], "readyz")


def compose(*arguments: str, without: str = "", given: str = "") -> subprocess.CompletedProcess[str]:
    program = shutil.which("docker-compose")
    assert program, "docker-compose is not installed: `make test` installs it (apt-get install docker-compose)."
    env = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    env |= {name: "1234" for name in SECRETS if name != without}
    with tempfile.NamedTemporaryFile("w") as file:  # instead of the .env that a person may have here
        file.write(given)
        file.flush()
        command = [program, "--env-file", file.name, *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_compose_accepts_its_file() -> None:
    done = compose("config", "--quiet")

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SECRETS)
def test_compose_refuses_to_start_without_a_secret(name: str) -> None:
    done = compose("config", "--quiet", without=name)

    assert done.returncode != 0
    assert name in done.stderr


@pytest.mark.req("OPS-1")
def test_only_the_daemon_of_boxes_holds_the_engines_socket(services: dict[str, Any]) -> None:
    holders = {
        name for name, service in services.items() if any(ENGINE_SOCKET in v for v in service.get("volumes", []))
    }

    assert holders == {"boxd"}
    assert {name for name, service in services.items() if "group_add" in service} == {"boxd"}


@pytest.mark.req("OPS-1")
def test_the_daemon_of_boxes_gets_its_settings_and_nothing_of_the_hub(services: dict[str, Any]) -> None:
    boxd = services["boxd"]
    handed = boxd["environment"]

    assert handed.keys() == {row.name for row in VARIABLES.rows.values() if BOXD in row.roles} | {"TOOLHUB_DATA_DIR"}
    assert not any(VARIABLES.rows[name].secret for name in handed)
    assert not any(volume.startswith(("data:", "signing:")) for volume in boxd["volumes"])
    assert boxd["networks"] == ["boxes"]
    assert [name for name, service in services.items() if "boxes" in service.get("networks", [])] == ["boxd"]
    assert "ports" not in boxd


def test_what_runs_calls_cannot_be_reached_from_outside(services: dict[str, Any]) -> None:
    assert services["worker"].get("networks", ["inside"]) == ["inside"]
    assert services["worker"]["volumes"] == ["data:/data", "boxd:/run/toolhub-boxd"]
    assert "ports" not in services["worker"]


def test_what_sends_mail_webhooks_and_callbacks_has_a_way_out_and_no_tools(services: dict[str, Any]) -> None:
    upkeep = services["upkeep"]

    assert upkeep["networks"] == ["inside", "outside"]
    assert "ports" not in upkeep
    assert upkeep["volumes"] == ["data:/data"]
    assert "group_add" not in upkeep
    assert services["worker"]["environment"]["TOOLHUB_WORKER_SENDS"] == "${TOOLHUB_WORKER_SENDS:-0}"


def test_the_hubs_processes_can_write_nothing_but_their_data_and_gain_no_rights(services: dict[str, Any]) -> None:
    for name in ("web", "worker", "upkeep", "keeper", "migrate", "boxd"):
        service = services[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_only_what_migrates_connects_as_the_owner_of_the_tables(services: dict[str, Any]) -> None:
    users = {
        name: re.match(r"postgresql://(\w+):", service.get("environment", {}).get("TOOLHUB_DATABASE_URL", ""))
        for name, service in services.items()
    }

    assert {name for name, user in users.items() if user and user[1] == "toolhub"} == {"migrate"}
    assert {user[1] for name, user in users.items() if user and name != "migrate"} == {"toolhub_hub"}
    assert "TOOLHUB_HUB_ROLE_PASSWORD" not in services["web"]["environment"]


def test_every_service_says_how_its_health_is_known(services: dict[str, Any]) -> None:
    assert [name for name, service in services.items() if "healthcheck" not in service] == []


def test_the_lock_for_development_holds_the_packages_that_run_the_hub() -> None:
    run, dev = venv.read_pins(venv.RUN_LOCK), venv.read_pins(venv.DEV_LOCK)

    assert len(run) > 50
    assert {name: dev.get(name) for name in run} == run


def test_a_lock_file_names_no_address() -> None:
    """Packages come from the registry that a machine is set up for, and who asks for money is not of the lock's business."""
    locks = [path for path in list_source_files() if path.name.endswith((".lock", "package-lock.json"))]

    assert len(locks) > 5
    assert [path for path in locks if "://" in path.read_text()] == []


@pytest.mark.req("LLM-10")
def test_the_image_of_the_hub_has_what_asks_providers_of_models_by_the_hashes_of_its_lock() -> None:
    dockerfile = (ROOT / "docker/hub.Dockerfile").read_text()
    run, models = venv.read_pins(venv.RUN_LOCK), venv.read_pins(venv.MODELS_LOCK)

    assert re.findall(r"^COPY (\S+\.lock) (\S+)$", dockerfile, re.MULTILINE) == [
        (venv.MODELS_LOCK, "/tmp/requirements.lock")
    ]
    assert "pip install --no-cache-dir --require-hashes -r /tmp/requirements.lock" in dockerfile
    assert f"!{venv.MODELS_LOCK}" in (ROOT / ".dockerignore").read_text().splitlines()
    assert {name: models.get(name) for name in run} == run
    assert {"pydantic-ai-slim", "openai", "anthropic", "genai-prices"} <= set(models)


def test_the_image_of_the_hub_builds_all_wheels_that_the_hub_serves() -> None:
    dockerfile = (ROOT / "docker/hub.Dockerfile").read_text()

    assert set(re.findall(r"packaging/([a-z-]+)(?=[ \n])", dockerfile)) == {*wheels.PROJECTS, "wheels"}
    packed = {folder for folders in wheels.PROJECTS.values() for folder in folders}
    assert set(re.findall(r"^COPY (\w\S*) \1$", dockerfile, re.MULTILINE)) == {*packed, "packaging"}


LOCKS = (
    venv.RUN_LOCK,
    venv.DEV_LOCK,
    venv.MODELS_LOCK,
    venv.BROWSER_LOCK,
    "requirements-local-models.lock",
    "scripts/provision/bootstrap.lock",
)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_is_named_with_its_hashes(lock: str) -> None:
    entries = re.split(r"^(?=[a-zA-Z0-9])", (ROOT / lock).read_text(), flags=re.MULTILINE)[1:]

    assert entries
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_browser_image_has_the_playwright_that_the_console_is_tested_with() -> None:
    image, dev = venv.read_pins(venv.BROWSER_LOCK), venv.read_pins(venv.DEV_LOCK)

    assert "playwright" in image
    assert {name: dev.get(name) for name in image} == image


def test_every_image_is_started_in_the_same_way() -> None:
    ends = {
        tuple(re.findall(r"^(?:ENV|USER|WORKDIR|RUN|ENTRYPOINT) .+$", (ROOT / file).read_text(), re.MULTILINE)[-5:])
        for file in ("sandbox/image/Dockerfile", ON_LAYER)
    }

    assert len(ends) == 1


def test_the_images_build_context_holds_what_its_dockerfile_copies() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "sandbox/image/Dockerfile").read_text(), re.MULTILINE)
    context = build_context()

    for pattern in " ".join(copied).split():
        wanted = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)}
        assert wanted
        assert wanted <= context.keys()


@pytest.mark.parametrize(("sends", "loops"), [(True, {"sender", "callbacks"}), (False, set())])
def test_a_worker_without_a_way_out_leaves_sending_to_others(sends: bool, loops: set[str], settings: Any) -> None:
    settings.TOOLHUB_WORKER_SENDS = sends

    assert {loop.name for loop in select_loops(*worker_roles())} & {"sender", "callbacks"} == loops
