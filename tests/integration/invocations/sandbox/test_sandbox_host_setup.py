"""Setting up sandbox hosts: certificates, the settings of both sides, and what the daemon's process has of the hub."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from django.core.management import CommandError, call_command

from invocations.sandbox import factory
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.wire.identities import Identity, IdentityFiles, IdentityUnusable
from kernel.variables import Unfit, read_sandbox_hosts

ROOT = Path(__file__).resolve().parents[4]
NOT_ITS_OWN = ("django", "rest_framework", "celery", "redis", "psycopg", "evidence", "access", "registry", "llm")


def run_daemon(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, *words]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=kept | {"TOOLHUB_ENV_FILE": ""} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.req("OPS-1")
def test_the_daemons_process_has_no_database_no_keys_and_no_django() -> None:
    done = run_daemon("-c", f"import toolhub.boxd, sys; print([name for name in {NOT_ITS_OWN} if name in sys.modules])")

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "Nobody could ask it"),
        ({"TOOLHUB_BOXD_BIND": "127.0.0.1:1"}, "TOOLHUB_BOXD_BIND needs TOOLHUB_SANDBOX_TLS_CA"),
        ({"TOOLHUB_BOXD_BIND": "nowhere"}, "TOOLHUB_BOXD_BIND must be a host and a port"),
    ],
)
def test_a_daemon_that_nobody_could_ask_says_so_and_ends(
    environment: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    done = run_daemon("-m", "toolhub.boxd", **environment, TOOLHUB_DATA_DIR=str(tmp_path))

    assert done.returncode == 1
    assert sentence in done.stderr


@pytest.mark.req("OPS-1")
def test_a_daemon_leaves_the_folders_of_a_worker_on_its_machine_alone(tmp_path: Path) -> None:
    built = tmp_path / "deps" / "built"
    built.mkdir(parents=True)
    settings = {"TOOLHUB_DATA_DIR": str(tmp_path), "TOOLHUB_BOXD_SOCKET": str(tmp_path / "boxd.sock")}

    script = "from toolhub import variables as v; print(v.TOOLHUB_BOXD_DEPENDENCY_DIR == v.TOOLHUB_DEPENDENCY_DIR)"
    by_default = run_daemon("-c", script, **settings)
    set_to_it = run_daemon("-m", "toolhub.boxd", **settings, TOOLHUB_BOXD_DEPENDENCY_DIR=str(built.parent))

    assert by_default.stdout.strip() == "False", by_default.stderr
    assert set_to_it.returncode == 1
    assert f"{built.parent} holds what toolhub-boxd has not put there" in set_to_it.stderr
    assert list(built.parent.iterdir()) == [built]


def test_whether_a_daemon_answers_is_an_exit_code(tmp_path: Path) -> None:
    done = run_daemon("-m", "toolhub.boxd", "--check", TOOLHUB_BOXD_SOCKET=str(tmp_path / "nobody"))

    assert done.returncode == 1
    assert "cannot be asked" in done.stdout


@pytest.mark.req("OPS-1")
def test_the_command_makes_certificates_of_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("boxd_certificates", host=["boxes-1,10.0.7.2"], worker=["worker-1"], folder=tmp_path / "boxd")

    said = capsys.readouterr().out
    for name, serves in (("host-boxes-1", True), ("worker-worker-1", False)):
        files = IdentityFiles(tmp_path / "boxd/ca.pem", tmp_path / f"boxd/{name}.pem", tmp_path / f"boxd/{name}.key")
        assert Identity(files, serves=serves).load()
        assert Identity(files, serves=serves).count_days_left() == 89
        assert files.key.stat().st_mode & 0o777 == 0o600
        assert str(files.certificate) in said
    assert (tmp_path / "boxd/ca.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("OPS-1")
def test_hosts_and_workers_of_one_name_have_files_of_their_own_and_the_authority_stays(tmp_path: Path) -> None:
    call_command("boxd_certificates", host=["ca", "boxes"], worker=["ca", "boxes"], folder=tmp_path)

    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for name, serves in (("host-ca", True), ("host-boxes", True), ("worker-ca", False), ("worker-boxes", False)):
        certificate = x509.load_pem_x509_certificate((tmp_path / f"{name}.pem").read_bytes())
        certificate.verify_directly_issued_by(authority)
        files = IdentityFiles(tmp_path / "ca.pem", tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        assert Identity(files, serves=serves).load()


@pytest.mark.parametrize("name", ["../ca", "/no/such/folder", "", "a b", "boxes_1", "-boxes", "boxes.", "a" * 65])
def test_a_name_that_is_none_makes_no_file(name: str, tmp_path: Path) -> None:
    for asked in ({"host": [f"boxes,{name}"]}, {"worker": [name]}):
        with pytest.raises(CommandError, match="is neither an address nor a name"):
            call_command("boxd_certificates", **asked, folder=tmp_path / "boxd")

    assert sorted(path.name for path in (tmp_path / "boxd").iterdir()) == ["ca.key", "ca.pem"]


def test_the_command_wants_to_know_for_whom(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--host NAME"):
        call_command("boxd_certificates", folder=tmp_path)


def test_files_that_are_no_certificates_are_named(tmp_path: Path) -> None:
    files = IdentityFiles(tmp_path / "ca.pem", tmp_path / "own.pem", tmp_path / "own.key")

    with pytest.raises(IdentityUnusable, match=r"ca\.pem"):
        Identity(files, serves=False).load()
    for path in (files.authority, files.certificate, files.key):
        path.write_text("nothing")
    with pytest.raises(IdentityUnusable, match=r"own\.pem cannot be used"):
        Identity(files, serves=False).load()


@pytest.mark.req("OPS-1")
def test_a_worker_asks_the_hosts_that_are_named_and_no_engine(settings: Any) -> None:
    settings.TOOLHUB_SANDBOX, settings.TOOLHUB_DIRECT = "docker", False
    settings.TOOLHUB_SANDBOX_HOSTS = ["unix:///run/boxd.sock", "tls://boxes-1:8443"]
    factory.current_sandbox.cache_clear()

    sandbox = factory.current_sandbox()

    assert isinstance(sandbox, RemoteSandbox)
    assert [str(host) for host in sandbox.hosts] == settings.TOOLHUB_SANDBOX_HOSTS
    factory.current_sandbox.cache_clear()


@pytest.mark.parametrize(
    "text", ["boxes-1:8443", "tls://boxes-1", "tls://boxes-1:8443/x", "unix://host/path", "http://a:1"]
)
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Unfit, match="is neither of both"):
        read_sandbox_hosts(text)
