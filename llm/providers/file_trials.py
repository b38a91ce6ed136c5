"""File trials: whether a model's file can be loaded and asked, tried in a process of its own.

Where llama.cpp finds something odd in a file it ends the whole process, and a hub must not end with it. The trial knows no secret of
the hub's, and where memory is short the system ends it first. What the trial has read of the file, the hub need not read again.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llm.providers.llama_servers import ServerPlan, open_server

PATIENCE_S = 600  # a large file comes from a slow disk
PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from llm.providers.file_trials import main; main()"
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "HOME")
LOADED, ANSWERED = "loaded", "answered"


def find_fault(plan: ServerPlan) -> str:
    """What is wrong with the file, as the end of a sentence; empty where nothing is. Takes as long as to load it."""
    command = [sys.executable, "-I", "-c", PROGRAM, json.dumps(sys.path)]
    # Its own way of saying where it ended would take a debugger, and seconds.
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"GGML_NO_BACKTRACE": "1"}
    said = json.dumps(asdict(plan))
    try:
        with tempfile.TemporaryDirectory(prefix="toolhub-trial-") as folder:  # what it cannot clear away itself
            done = subprocess.run(
                command,
                input=said,
                capture_output=True,
                text=True,
                env=env | {"TMPDIR": folder},
                timeout=PATIENCE_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return f"was not loaded within {PATIENCE_S // 60} minutes: take a smaller one, or a faster disk"
    except OSError as error:
        return f"could not be tried, for no process could be started ({error.strerror}): look at the machine's limits"
    if done.stdout.endswith(ANSWERED):
        return ""
    if done.returncode == -signal.SIGKILL:
        return "needs more memory than the machine has: take a smaller one, or lower the provider's option `context_tokens`"
    return (
        "was loaded, but it could not be asked: it may be meant for something else, or converted wrongly. Convert it anew"
        if LOADED in done.stdout
        else "cannot be loaded: it is damaged, or newer than the installed xllamacpp. Copy it again, or convert it for that"
    )


def main() -> None:
    """In the process of the trial."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    plan = ServerPlan(**json.load(sys.stdin))
    server = open_server(plan)
    _say(LOADED)
    if _ask(server, plan.pooling):
        _say(ANSWERED)
    # Nothing of the library's ending can spoil what was found.
    os._exit(0)


def _say(word: str) -> None:
    sys.stdout.write(word)
    sys.stdout.flush()


def _ask(server: Any, pooling: str) -> bool:
    if pooling == "none":
        pieces: list[str] = []
        body: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "stream": True}
        server.handle_chat_completions(json.dumps(body), pieces.append)
        return any("choices" in json.loads(piece) for piece in pieces)
    if pooling == "rank":
        return "results" in json.loads(server.handle_rerank(json.dumps({"query": "a", "documents": ["b"]})))
    return "data" in json.loads(server.handle_embeddings(json.dumps({"input": ["a"]})))
