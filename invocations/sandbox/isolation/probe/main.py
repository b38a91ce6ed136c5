"""First process: what that of a probe's box does.

It is started by ``python -c`` in place of the runner, with what was asked of the engine. It says JSON on stdout, its length
in eight digits first, and waits to be ended.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from . import container, network, resource_limits, system_calls, tool

if TYPE_CHECKING:
    from collections.abc import Callable

_SOCKET = "/c/s"


def find_abilities(asked: dict[str, Any]) -> dict[str, Any]:
    """What a box needs of its runtime besides walls."""
    return {
        "counts_processes": _tried(resource_limits.counts_processes, default=False),
        "unix_socket": network.echoes_question(_SOCKET, asked["nonce"].encode()),
        "no_namespaces": _tried(lambda: system_calls.try_new_namespaces(asked["uid"], "/w"), default="cannot be tried"),
        "label": _tried(_label, default=""),
    }


def _tried(ask: Callable[[], Any], *, default: Any) -> Any:
    try:
        return ask()
    except OSError:
        return default


def _label() -> str:
    """What AppArmor or SELinux calls this process."""
    with open("/proc/self/attr/current") as file:
        return file.read().strip("\0\n ")


def main(asked: dict[str, Any]) -> None:
    looks = {"box": container.list_checks(asked), "tool": tool.LOOKS, "": {}}[asked["looks"]]
    names = asked["only"] or looks
    found = {"abilities": find_abilities(asked), "walls": {name: container.run_check(looks[name]) for name in names}}
    text = json.dumps(found).encode()
    os.write(1, b"%08d" % len(text) + text)
    time.sleep(asked["patience_s"])
