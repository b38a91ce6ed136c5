"""A follower of how-tos: how is a page of docs/how-to followed to the letter? Its blocks are run as they stand, each on the host
that it names.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.e2e.processes import ROOT, Process

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOW_TO = ROOT / "docs" / "how-to"
BLOCK = re.compile(
    r"^```sh\n# on (?P<host>[\w ']+?)(?P<service>, as a service)?(?:, as [^\n]*)?\n(?P<text>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
WITHIN_S = 900
# The shell of a host stops at the first command that fails; what it has set is there again for the next block. Files that are
# copied to another host name its folders there.
BEGIN = """
set -aeuo pipefail
cd "$SOURCES"
[ ! -e "$STATE" ] || . "$STATE"
scp() {
    local target="${!#}" file to
    for file in "${@:1:$#-1}"; do
        to="$HOSTS/${target%%:*}/${target#*:"$HOSTS"/*/}$(basename "$file")"
        mkdir -p "$(dirname "$to")"
        sed "s|$HERE/|$HOSTS/${target%%:*}/|g" "$file" > "$to"
    done
}
"""
END = '\nexport -p > "$STATE"\n'


@dataclass(frozen=True, slots=True)
class Block:
    host: str
    service: bool
    text: str


def blocks_of(page: str, *, section: str) -> list[Block]:
    """The blocks of one section that say on which host they are typed."""
    text = (HOW_TO / page).read_text()
    begin = text.index(f"\n## {section}\n")
    end = text.find("\n## ", begin + 1)
    found = BLOCK.finditer(text[begin : end if end > 0 else None])
    return [Block(each["host"], bool(each["service"]), each["text"]) for each in found]


@dataclass(slots=True)
class Follower:
    """Somebody who types what the page says. ``words``: what stands on the page, and what it is here; folders that a host has for
    itself become one of its own.
    """

    folder: Path
    env: Mapping[str, str]
    words: Mapping[str, str]
    own: tuple[str, ...] = ("/etc/toolhub", "/var/lib/toolhub")
    services: list[Process] = field(default_factory=list)

    def of(self, host: str) -> Path:
        place = self.folder / re.sub(r"\W+", "-", host)
        for name in self.own:
            (place / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return place

    def here(self, text: str, host: str) -> str:
        for word, meant in self.words.items():
            text = text.replace(word, meant)
        for name in self.own:
            text = text.replace(name, f"{self.of(host)}{name}")
        return text

    def environment(self, host: str) -> dict[str, str]:
        here = self.of(host)
        return {
            **self.env,
            "SOURCES": str(ROOT),
            "HOSTS": str(self.folder),
            "HERE": str(here),
            "STATE": str(here / "shell"),
        }

    def follow(self, block: Block) -> str:
        """What the block printed; a service goes on beside."""
        script = BEGIN + self.here(block.text, block.host)
        if block.service:
            *before, last = block.text.strip().splitlines()
            script = BEGIN + self.here("\n".join([*before, f"exec {last}"]), block.host)
            log = self.of(block.host) / "service.log"
            self.services.append(Process(["bash", "-c", script], self.environment(block.host), log))
            return ""
        done = subprocess.run(
            ["bash", "-c", script + END],
            env=self.environment(block.host),
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{block.text}\nexited with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def stop(self) -> None:
        for process in self.services:
            process.stop()
