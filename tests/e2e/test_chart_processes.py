"""The chart's processes: do they work with the very environment that a render gives them?

Only places are others than in a pod: addresses, folders and ports of this machine. Secrets are made as the page says.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest

from scripts.provision.processes import free_port
from tests.crash.postgres import own_postgres
from tests.e2e.processes import ROOT, Process, clean_environment, python, run, until
from tests.e2e.services import OwnRedis
from tests.e2e.wire import remove_boxes, request
from tests.support.doc_blocks import ALL
from tests.support.rendered_chart import Workload, read

if TYPE_CHECKING:
    from pathlib import Path

PAGE, POD_IP, TOKEN = "deploy-on-kubernetes.md", "10.42.7.3", "for-the-scrape"
EXAMPLE = "high_availability"  # has metrics
HOST = "toolhub-boxd-boxes-1.hub.svc"
STARTED = ("boxd", "web", "worker", "upkeep", "keeper")
PORTS = ("TOOLHUB_BIND", "TOOLHUB_PROBE_BIND", "TOOLHUB_METRICS_BIND", "TOOLHUB_BOXD_BIND")


def run_block(folder: Path, word: str, *, instead: tuple[str, str] = ("", "")) -> None:
    """The page's own block with this word; ``instead``: what is written there, and what is meant here."""
    [block] = [each for each in ALL if each.page.name == PAGE and word in each.text]
    script = block.text.replace(".venv/bin/python manage.py", " ".join(python(str(ROOT / "manage.py"))))
    written, meant = instead
    assert written in script
    script = script.replace(written, meant) if written else script
    subprocess.run(["bash", "-euc", script], cwd=folder, env=clean_environment(), check=True, capture_output=True)


class Pod:
    """A process as the chart starts it, on this machine."""

    def __init__(self, workload: Workload, folder: Path, secrets: dict[tuple[str, str], str], instance: str) -> None:
        self.workload, self.folder = workload, folder / workload.component
        for name in ("data", "kept", "run", "deps"):
            (self.folder / name).mkdir(parents=True)
        places = {
            "TOOLHUB_DATA_DIR": str(self.folder / "data"),
            "TOOLHUB_KEPT_CHECKPOINT_FILE": str(self.folder / "kept" / "checkpoint"),
            "TOOLHUB_SANDBOX_RUN_DIR": str(self.folder / "run"),
            "TOOLHUB_DEPENDENCY_DIR": str(self.folder / "deps"),
            "TOOLHUB_BOXD_DEPENDENCY_DIR": str(self.folder / "boxd-deps"),
            "TOOLHUB_SANDBOX_IMAGE": clean_environment().get("TOOLHUB_SANDBOX_IMAGE", ""),
            "TOOLHUB_INSTANCE": instance,
            "TOOLHUB_BOXD_SOCKET": str(self.folder / "boxd.sock"),
        } | {name: f"127.0.0.1:{free_port()}" for name in PORTS}
        self.env = clean_environment()
        for name, value in workload.environment.items():
            if isinstance(value, dict):
                if "secretKeyRef" in value:
                    found = secrets.get((value["secretKeyRef"]["name"], value["secretKeyRef"]["key"]))
                    assert found is not None or value["secretKeyRef"].get("optional"), f"{name}: no such Secret"
                    self.env |= {} if found is None else {name: found}
            elif value:
                self.env[name] = places.get(name, value.replace("$(POD_IP)", POD_IP))
            else:
                self.env[name] = ""
        if signing := workload.environment.get("TOOLHUB_SIGNING_KEY_FILE"):
            assert signing == "/signing/keys.json"
            file = self.folder / "keys.json"
            file.write_text(secrets["toolhub-signing", "keys.json"])
            file.chmod(0o440)  # as a Secret is mounted
            self.env["TOOLHUB_SIGNING_KEY_FILE"] = str(file)

        for volume in workload.pod["volumes"]:
            if volume["name"] == "certificate":
                self._mount_certificate(volume["secret"], secrets)

    def _mount_certificate(self, secret: dict[str, Any], secrets: dict[tuple[str, str], str]) -> None:
        """As files, where the settings say that they are."""
        for item in secret["items"]:
            file = self.folder / item["path"]
            file.write_text(secrets[secret["secretName"], item["key"]])
            file.chmod(0o440)
            for name in ("CA", "CERTIFICATE", "KEY"):
                if self.workload.environment[f"TOOLHUB_SANDBOX_TLS_{name}"] == f"/certificate/{item['path']}":
                    self.env[f"TOOLHUB_SANDBOX_TLS_{name}"] = str(file)

    @property
    def command(self) -> list[str]:
        program, *words = self.workload.container["command"]
        return python(*(words if program == "python" else ["-m", program, *words]))

    def probe(self, probe: str) -> int:
        """The status that a kubelet sees; 0 while nobody answers. A command that ends well is as good as 200."""
        if "exec" in self.workload.container[probe]:
            _, *words = self.workload.container[probe]["exec"]["command"]
            done = subprocess.run(python(*words), env=self.env, cwd=ROOT, capture_output=True, check=False)
            return 200 if done.returncode == 0 else 0
        asked = self.workload.container[probe]["httpGet"]
        headers = {row["name"]: row["value"] for row in asked.get("httpHeaders", [])}
        address = self.env["TOOLHUB_BIND" if asked["port"] == "http" else "TOOLHUB_PROBE_BIND"]
        try:
            return request("GET", f"http://{address}{asked['path']}", headers={"Host": POD_IP} | headers).status
        except OSError:
            return 0

    def scrape(self) -> str:
        address = self.env["TOOLHUB_BIND" if self.workload.component == "web" else "TOOLHUB_METRICS_BIND"]
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": POD_IP}
        answer = request("GET", f"http://{address}/metrics", headers=headers)
        return answer.body.decode() if answer.status == 200 else ""


@pytest.mark.long  # five processes and a PostgreSQL of its own
def test_every_process_is_ready_with_the_environment_of_the_chart_and_the_keeper_seals(tmp_path: Path) -> None:
    run_block(tmp_path, "--keys-only")
    run_block(tmp_path, "boxd_certificates", instead=(f"--host {HOST}", f"--host {HOST},127.0.0.1"))
    keys, boxd, redis = tmp_path / "keys", tmp_path / "boxd", OwnRedis(tmp_path)
    with own_postgres() as postgres, ExitStack() as started:
        server = urlsplit(postgres.url)
        secrets = {
            ("toolhub-database", "url"): server._replace(
                netloc=f"toolhub_hub:of-the-hub@{server.hostname}:{server.port}"
            ).geturl(),
            ("toolhub-database-owner", "url"): postgres.url,
            ("toolhub-database-owner", "hub-role-password"): "of-the-hub",
            ("toolhub-redis", "url"): redis.url,
            ("toolhub-keys", "secret-key"): (keys / "secret-key").read_text(),
            ("toolhub-keys", "master-keys"): (keys / "keys.json").read_text(),
            ("toolhub-signing", "keys.json"): (keys / "signing-keys.json").read_text(),
            ("toolhub-metrics", "token"): TOKEN,
        }
        for secret, name in (("toolhub-worker", "worker-toolhub-worker"), ("toolhub-boxd-boxes-1", f"host-{HOST}")):
            secrets[secret, "ca.crt"] = (boxd / "ca.pem").read_text()
            secrets[secret, "tls.crt"] = (boxd / f"{name}.pem").read_text()
            secrets[secret, "tls.key"] = (boxd / f"{name}.key").read_text()
        rendered = [each for each in read(EXAMPLE).workloads if each.name != "toolhub-boxd-boxes-2"]
        pods = {each.component: Pod(each, tmp_path / "p", secrets, str(tmp_path)) for each in rendered}
        pods["worker"].env["TOOLHUB_SANDBOX_HOSTS"] = f"tls://{pods['boxd'].env['TOOLHUB_BOXD_BIND']}"
        redis.start()
        started.callback(redis.stop)
        started.callback(remove_boxes, str(tmp_path))

        said = run(pods["init"].command, pods["init"].env)
        for name in STARTED:
            process = Process(pods[name].command, pods[name].env, tmp_path / f"{name}.log")
            started.callback(process.stop)

        assert re.search(r"shown this once: \S+", said), said
        for name in STARTED:
            for probe in ("readinessProbe", "livenessProbe"):
                until(lambda pod=pods[name], probe=probe: pod.probe(probe) == 200, f"{name} passes its {probe}")  # type: ignore[misc]
            if name != "boxd":
                assert "toolhub_queue_age_seconds" in pods[name].scrape(), name
        doctor = python(str(ROOT / "manage.py"), "doctor", "--role", "worker")
        told = subprocess.run(doctor, env=pods["worker"].env, cwd=ROOT, capture_output=True, text=True, check=False)
        assert f"{pods['worker'].env['TOOLHUB_SANDBOX_HOSTS']}: " in told.stdout, "the worker reaches it by TLS"
        with psycopg.connect(postgres.url) as connection:
            until(
                lambda: connection.execute("SELECT count(*) FROM evidence_seal").fetchone() != (0,),
                "the facts of the beginning are sealed",
            )
        until((pods["keeper"].folder / "kept" / "checkpoint").exists, "the keeper keeps its checkpoint")
