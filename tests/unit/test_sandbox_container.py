from __future__ import annotations

import json
from typing import Any

import pytest

from invocations.sandbox import owner
from invocations.sandbox.base import Limits
from invocations.sandbox.container import container_config
from invocations.sandbox.seccomp import build_profile

MIB = 1024 * 1024


def config(limits: Limits | None = None, **more: Any) -> dict[str, Any]:
    return container_config(
        image="sha256:1", uid=200_005, limits=limits or Limits(), package_bytes=0, labels={"a": "b"}, **more
    )


def test_every_wall_of_the_engine_is_asked_for() -> None:
    host = config()["HostConfig"]

    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges" in host["SecurityOpt"]
    (seccomp,) = [option for option in host["SecurityOpt"] if option.startswith("seccomp=")]
    assert json.loads(seccomp.removeprefix("seccomp=")) == build_profile()
    assert host["ReadonlyRootfs"]
    assert host["NetworkMode"] == host["IpcMode"] == "none"
    assert host["LogConfig"]["Type"] == "none"
    assert host["AutoRemove"]
    assert not host["Privileged"]
    assert not {"Binds", "Mounts", "Devices", "CapAdd", "VolumesFrom", "PidMode"} & set(host)
    assert "/proc/kallsyms" in host["MaskedPaths"]
    assert "/proc/sys" in host["ReadonlyPaths"]


def test_the_limits_are_the_profiles() -> None:
    host = config(Limits(memory_bytes=64 * MIB, processes=7, tmp_bytes=5 * MIB))["HostConfig"]

    assert host["PidsLimit"] == 10
    assert 64 * MIB < host["Memory"] <= 128 * MIB
    assert host["MemorySwap"] == host["Memory"]
    assert "size=5242880," in host["Tmpfs"]["/w"]
    for option in ("noexec", "nosuid", "nodev", "mode=0700", "uid=200005", "nr_inodes="):
        assert option in host["Tmpfs"]["/w"]
    assert "mode=0000" in host["Tmpfs"]["/dev/mqueue"]


def test_no_scratch_space_is_not_unlimited_scratch_space() -> None:
    scratch = config(Limits(tmp_bytes=0))["HostConfig"]["Tmpfs"]["/w"]

    assert "size=4096," in scratch
    assert "mode=0500" in scratch


def test_the_box_ends_with_its_connection_and_is_nobody() -> None:
    body = config()

    assert body["StdinOnce"] and body["OpenStdin"] and not body["Tty"]
    assert body["User"] == "200005:200005"
    assert body["Hostname"] == "sandbox"
    assert body["Labels"] == {"a": "b"}
    assert "Cmd" not in body and "Env" not in body


def test_the_runtime_is_the_operators_choice() -> None:
    assert "Runtime" not in config()["HostConfig"]
    assert config(runtime="runsc")["HostConfig"]["Runtime"] == "runsc"


def test_this_process_is_not_gone() -> None:
    assert not owner.is_gone(owner.this_process())


@pytest.mark.parametrize("pid", ["999999999", "1"])
def test_a_process_that_ended_or_whose_number_was_reused_is_gone(pid: str) -> None:
    boot, namespace, _, _ = owner.this_process().split("/")

    assert owner.is_gone(f"{boot}/{namespace}/{pid}/12345678901")


@pytest.mark.parametrize("name", ["", "nonsense", "other-boot/1/1/1", "a/b/c/d/e"])
def test_of_an_owner_elsewhere_nothing_is_claimed(name: str) -> None:
    assert not owner.is_gone(name)
