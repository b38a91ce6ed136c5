"""Started servers: what a server of others lists when its author starts it on a machine of theirs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from unitools.brought_tools import ServerReach
from unitools.command.object_trials import PLACEHOLDER
from unitools.command.terminal import CannotRun, format_shown
from unitools.mcp_conversation import RequestRefused, ServerEnded, ServerUnfit
from unitools.mcp_listings import Listing
from unitools.mcp_pipes import PipeConversation
from unitools.server_secrets import advise_secret, build_secret_entry, fits_secret

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LIST_WITHIN_S = 60


def read_reach(options: argparse.Namespace) -> ServerReach:
    """What the author gives to the server beside its own code."""
    return ServerReach(
        hosts=tuple(options.host),
        keeps=options.keep_files,
        programs=tuple(options.program),
        image=options.image,
        trees=tuple(options.file_tree),
        browser=options.browser,
    )


def read_secrets(options: argparse.Namespace) -> tuple[dict[str, str], ...]:
    """Entries of the server's environment, of the secrets that this run names."""
    for text in options.secret:
        if not fits_secret(text):
            raise CannotRun(
                f"--secret is a name in capitals, such as API_KEY. A value never stands here.{advise_secret(text)}"
            )
    return tuple(build_secret_entry(each) for each in dict.fromkeys(options.secret))


def list_server_tools(
    command: Sequence[str], start: dict[str, Any], place: Path, *, keeps: bool, hint: str, **environment: str
) -> Listing:
    """``place``: an empty folder of its own; ``keeps``: its calls keep files; ``hint``: what usually helps where it does not."""
    if keeps:
        start = _move_kept_files(start, place)
    home = place / "home"
    home.mkdir()
    # The zone of a sandbox: servers name that of their machine in what they list.
    given = {"PATH": os.defpath, "HOME": str(home), "TZ": "UTC"} | environment
    said_of = start.get("environment", ())
    given |= {each["name"]: each.get("value", PLACEHOLDER) for each in said_of if "value" in each or "secret" in each}
    whole = [*command, *start.get("arguments", ())]
    with (place / "stderr").open("w+b") as said, _server(whole, given, home, said) as talk:
        try:
            begun = talk.initialize()
            return Listing.from_json({"protocol": begun["protocolVersion"], "tools": talk.list_tools()})
        except (ServerEnded, ServerUnfit, RequestRefused) as error:
            said.seek(0)
            tail = said.read()[-2048:].decode(errors="replace").splitlines()
            why = str(error) or f"it ended before it had answered, or was silent for {LIST_WITHIN_S} seconds"
            raise CannotRun(
                "\n".join([f"The server does not list its tools: {why}", *map(format_shown, tail), hint])
            ) from error


def _move_kept_files(start: dict[str, Any], place: Path) -> dict[str, Any]:
    """For a start on this machine: what a box has in ``/data`` is in a folder that goes when the server has ended."""
    data = place / "data"
    data.mkdir()

    def move(text: str) -> str:
        return re.sub(r"(?<![^=:,;\s])/data(?=/|$)", lambda _: str(data), text)

    said = start.get("environment", ())
    environment = [each | {"value": move(each["value"])} if "value" in each else each for each in said]
    return start | {"arguments": [move(each) for each in start.get("arguments", ())], "environment": environment}


@contextmanager
def _server(command: Sequence[str], environment: dict[str, str], home: Path, said: Any) -> Iterator[PipeConversation]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=said, env=environment, cwd=home, start_new_session=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield PipeConversation(
                server.stdout.fileno(),
                server.stdin.fileno(),
                log=_tell,
                note=_tell,
                progress=lambda _fraction, _message: None,
                deadline=time.monotonic() + LIST_WITHIN_S,
            )
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)  # what it has started as well


def _tell(line: str) -> None:
    sys.stderr.write(f"  {format_shown(line)}\n")
