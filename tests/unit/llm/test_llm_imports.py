"""Imports of the model layer: does the model layer stand by itself: no Django, no connection, no provider's library before a
provider is connected?
"""

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


# Of llm/providers, what is imported before a provider is connected.
PROVIDERS = "llm.providers."
AT_ONCE = {"llm.providers", "llm.providers.kinds", "llm.providers.failures"}


def import_modules(modules: list[str]) -> set[str]:
    """All that is imported with them, in a process that may open no connection."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *modules], cwd=ROOT, capture_output=True, text=True, check=False, env={}
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert set(modules) <= imported
    packages = {name.partition(".")[0] for name in imported}
    assert (
        packages & {"django", "rest_framework", "celery", "access", "evidence", "registry", "invocations", "toolhub"}
        == set()
    )
    return imported


def test_importing_it_needs_no_library_of_a_provider() -> None:
    modules = [each for each in MODULES if each in AT_ONCE or not each.startswith(PROVIDERS)]
    imported = import_modules(modules)

    assert len(modules) > 10
    packages = {name.partition(".")[0] for name in imported}
    assert packages & {"openai", "anthropic", "google", "httpx", "httpx2", "requests", "pydantic_ai"} == set()
    assert {name for name in imported if name.startswith("kernel.")} == {"kernel.ids", "kernel.problems"}


def test_importing_all_of_it_opens_no_connection_and_needs_no_django() -> None:
    imported = import_modules(MODULES)

    assert {name for name in imported if name.startswith("kernel.")} == {
        *("kernel.ids", "kernel.problems", "kernel.http", "kernel.http.addresses"),
    }
