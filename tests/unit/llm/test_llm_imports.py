"""Does the model layer stand by itself: no Django, no connection, nothing of the hub but the problems and ids?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "llm").rglob("*.py")
)
# An audit hook sees every socket and every process, whichever library makes it.
PROGRAM = """
import sys

def refuse(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "urllib.")):
        raise RuntimeError(event)

sys.addaudithook(refuse)
for module in sys.argv[1:]:
    __import__(module)
print(*sorted(sys.modules))
"""


def test_importing_it_needs_no_django_and_opens_no_connection() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *MODULES], cwd=ROOT, capture_output=True, text=True, check=False, env={}
    )

    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert set(MODULES) <= imported
    assert len(MODULES) > 10
    packages = {name.partition(".")[0] for name in imported}
    assert (
        packages & {"django", "rest_framework", "celery", "access", "evidence", "registry", "invocations", "toolhub"}
        == set()
    )
    assert packages & {"openai", "anthropic", "google", "httpx", "httpx2", "requests", "pydantic_ai"} == set()
    assert {name for name in imported if name.startswith("kernel.")} == {"kernel.ids", "kernel.problems"}
