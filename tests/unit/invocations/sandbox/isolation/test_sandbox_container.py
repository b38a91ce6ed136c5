from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from invocations.sandbox.base import Limits, Profile, SandboxCall
from invocations.sandbox.boxes import owner_process
from invocations.sandbox.isolation.container import BoxShape, build_box_shape, build_container_config
from invocations.sandbox.isolation.seccomp import build_profile

MIB = 1024 * 1024


def config(limits: Limits | None = None, **more: Any) -> dict[str, Any]:
    return build_container_config(
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
    for option in ("noexec", "nosuid", "nodev", "noatime", "mode=0700", "uid=200005", "nr_inodes="):
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


def test_calls_with_namespaces_of_their_own_have_a_filter_of_their_own() -> None:
    (seccomp,) = [each for each in config(fresh=True)["HostConfig"]["SecurityOpt"] if each.startswith("seccomp=")]

    assert json.loads(seccomp.removeprefix("seccomp=")) == build_profile(fresh=True)


def test_only_the_boxs_own_folder_and_its_packages_are_mounted_and_nothing_can_be_written_there() -> None:
    mounts = config(folder=Path("/run/toolhub/x/y"), dependencies="/deps/sha256")["HostConfig"]["Mounts"]

    assert [(mount["Source"], mount["Target"]) for mount in mounts] == [
        ("/run/toolhub/x/y", "/c"),
        ("/deps/sha256", "/deps"),
    ]
    assert {(mount["Type"], mount["ReadOnly"]) for mount in mounts} == {("bind", True)}


def test_room_for_files_is_there_for_tools_with_files_only_and_bounded() -> None:
    without, files = config()["HostConfig"], config(Limits(file_bytes=3 * MIB), data=True)["HostConfig"]

    assert "/data" not in without["Tmpfs"]
    assert "size=6291456," in files["Tmpfs"]["/data"]
    assert "noexec" in files["Tmpfs"]["/data"]


def test_what_a_container_does_not_carry_makes_no_shape_of_its_own() -> None:
    call = SandboxCall("inv-1", bytes(1000), "tool.main", "run", b"{}", {})
    usual = build_box_shape(Profile(), None, level="fresh", image="i", runtime="")

    def shape(limits: Limits | None = None, level: str = "fresh", **more: Any) -> BoxShape:
        return build_box_shape(Profile(limits or Limits()), replace(call, **more), level=level, image="i", runtime="")

    assert usual == shape() == shape(Limits(wall_ms=200_000, cpu_s=5, result_bytes=5, log_bytes=5), package=bytes(MIB))
    assert shape(level="shared") == shape(level="single") == shape(level="cold") != usual
    others = [
        shape(Limits(memory_bytes=MIB)),
        shape(Limits(processes=5)),
        shape(Limits(tmp_bytes=MIB)),
        shape(Limits(wall_ms=301_000)),
        shape(package=bytes(MIB + 1)),
        shape(dependencies=Path("/deps/sha256")),
    ]
    assert len({usual, *others}) == 7


def test_a_shape_says_what_it_may_hold() -> None:
    shape = build_box_shape(Profile(), None, level="fresh", image="i", runtime="")

    assert shape.memory_bytes == shape.config(uid=200_001, labels={}, folder=None)["HostConfig"]["Memory"]
    assert str(shape) == "256 MB fresh"


def test_this_process_is_not_gone() -> None:
    assert not owner_process.is_gone(owner_process.describe_this_process())


@pytest.mark.parametrize("pid", ["999999999", "1"])
def test_a_process_that_ended_or_whose_number_was_reused_is_gone(pid: str) -> None:
    boot, namespace, _, _ = owner_process.describe_this_process().split("/")

    assert owner_process.is_gone(f"{boot}/{namespace}/{pid}/12345678901")


@pytest.mark.parametrize("name", ["", "nonsense", "other-boot/1/1/1", "a/b/c/d/e"])
def test_of_an_owner_elsewhere_nothing_is_claimed(name: str) -> None:
    assert not owner_process.is_gone(name)
