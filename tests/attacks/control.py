"""The control: how does the obvious way fare: one container, `docker exec` for each call, and the tool's standard output as its
result?

The control of the suite. If the attacks did no harm here, they would prove nothing about the boxes. The container has
what Docker gives by itself, but for what keeps this machine and its network out of it: no network, at most so many
processes, so much memory, and a scratch space of a fixed size.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import uuid
import zipfile
from typing import Any

from invocations.sandbox.base import Limits, RunOutcome, RunStatus
from sandbox.image import image_name
from tests.attacks.arena import HOSTILE, arguments_of
from tests.attacks.catalogue import USUAL, Attack

_PYTHON = "/usr/local/bin/sandbox-python"
_RAILS = ("--network", "none", "--pids-limit", "300", "--memory", "400m", "--memory-swap", "400m", "--cpus", "1",
          "--tmpfs", "/w:size=64m", "--tmpfs", "/p:size=16m", "--tmpfs", "/tmp:size=64m")  # fmt: skip
_RUNNER = """
import importlib, json, os, sys
sys.path += ["/p", "/opt/toolhub"]
os.chdir("/w")
asked = json.loads(sys.stdin.read())
from unitools import runtime
with runtime.running(runtime.Call.from_json(asked["context"])):
    try:
        value = getattr(importlib.import_module(asked["module"]), asked["function"])(**asked["arguments"])
        print(json.dumps({"ok": value}))
    except Exception as error:
        print(json.dumps({"error": type(error).__name__ + ": " + str(error)}))
"""


class Control:
    """One container that is kept while it answers."""

    def __init__(self) -> None:
        self._image = os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()
        self._box = ""
        self._world: Any = None

    def fails(self, attack: Attack) -> str:
        """Why the attack was not contained; empty if it was."""
        if not self._box:
            self._start()
        outcome = self._call(attack.name, attack.limits, **arguments_of(attack))
        why = self._reach(outcome)
        if not why and attack.then:
            found = self._call(attack.then, attack.limits)
            why = f"the next call found {found.value}" if found.value else ""
        innocent = self._call("innocent.run", attack.limits, number=1000)
        if not why and innocent.status is not RunStatus.OK:
            why = f"the next call could not be made: {innocent.error_message}"
        if not why and (innocent.value["answer"] != sum(range(1000)) or innocent.value["left"]):
            why = f"the next call was wrong: {innocent.value['left']}"
        if not why and innocent.value["world"] != self._world:
            why = "the next call found another world"
        if why:
            self.close()
        return why

    def _reach(self, outcome: RunOutcome) -> str:
        """Harm that is certain. That a call ends otherwise than in a box is none."""
        if outcome.value:
            return f"it got {str(outcome.value)[:200]}"
        if outcome.status is RunStatus.TIMED_OUT and self._still_runs():
            return "it runs on"
        return ""

    def _still_runs(self) -> bool:
        """Docker has no way to end what it has begun with exec."""
        listed = subprocess.run(["docker", "top", self._box, "-o", "pid"], capture_output=True, text=True, timeout=30)
        return len(listed.stdout.split()) > 2

    def _start(self) -> None:
        wait = ["-I", "-S", "-c", "import time; time.sleep(1e6)"]
        name = f"toolhub-control-{uuid.uuid4().hex[:8]}"
        run = [
            "docker",
            "run",
            "--detach",
            "--rm",
            "--name",
            name,
            "--user",
            "0:0",
            *_RAILS,
            "--entrypoint",
            _PYTHON,
            self._image,
            *wait,
        ]
        subprocess.run(run, check=True, capture_output=True, timeout=60)
        self._box = name
        unpack = [
            _PYTHON,
            "-I",
            "-S",
            "-c",
            "import sys, tarfile; tarfile.open(fileobj=sys.stdin.buffer, mode='r|').extractall('/p')",
        ]
        subprocess.run(
            ["docker", "exec", "-i", name, *unpack], input=_as_tar(HOSTILE), check=True, capture_output=True, timeout=60
        )
        self._world = self._call("innocent.run", USUAL, number=1000).value["world"]

    def _call(self, name: str, limits: Limits, **arguments: object) -> RunOutcome:
        module, _, function = name.rpartition(".")
        context = {
            "call_id": "inv_test",
            "tool_id": "t",
            "started_at": "2026-11-22T10:00:00+00:00",
            "config": {},
            "secrets": {"CANARY": uuid.uuid4().hex},
        }
        asked = {"module": f"hostile.{module}", "function": function, "arguments": arguments, "context": context}
        command = ["docker", "exec", "-i", self._box, _PYTHON, "-I", "-S", "-B", "-c", _RUNNER]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            try:
                said, _ = process.communicate(json.dumps(asked).encode(), timeout=limits.wall_ms / 1000 + 1)
            except subprocess.TimeoutExpired:
                process.kill()
                return RunOutcome(RunStatus.TIMED_OUT, error_message="it did not end")
        try:
            last = json.loads(said.splitlines()[-1])
            if "ok" in last:
                return RunOutcome(RunStatus.OK, value=last["ok"])
            return RunOutcome(RunStatus.RAISED, error_message=str(last["error"]))
        except (IndexError, ValueError, KeyError, TypeError):
            status = RunStatus.EXITED if process.returncode else RunStatus.BAD_RESULT
            return RunOutcome(status, error_message=said[-200:].decode("utf-8", "replace"))

    def close(self) -> None:
        if self._box:
            subprocess.run(["docker", "rm", "--force", self._box], capture_output=True, timeout=60)
        self._box = ""


def _as_tar(package: bytes) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as archive, tarfile.open(fileobj=memory, mode="w") as tar:
        for entry in archive.infolist():
            found = tarfile.TarInfo(entry.filename)
            found.size = entry.file_size
            tar.addfile(found, io.BytesIO(archive.read(entry)))
    return memory.getvalue()
