"""Checks: whether the code keeps its own rules, as far as a machine can tell.

One line for each check. All of them run: the first "no" does not hide the next. The types take as long as all others together,
on one core, so they are checked beside them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripts.provision import packages, venv
from scripts.provision.console import ROOT, announce_step, print_line, run_program

if TYPE_CHECKING:
    from collections.abc import Sequence

FRONTEND = ROOT / "frontend"
LONG_MODULE = 400  # lines
# Templates of all, and those beside their pages.
TEMPLATES = ("templates", "access", "evidence", "invocations", "registry", "toolhub")


@dataclass(frozen=True, slots=True)
class Check:
    says: str
    command: Sequence[str]
    cure: str


def run_checks() -> int:
    python = str(venv.ensure_venv(dev=True))
    programs = str(venv.VENV / "bin")
    types = Check("types", [f"{programs}/mypy", "--num-workers=2"], "the lines above name the places")
    others = (
        Check("code style", [f"{programs}/ruff", "check", "."], "make fix"),
        Check("formatting", [f"{programs}/ruff", "format", "--check", "."], "make fix"),
        Check("direction of imports", [f"{programs}/lint-imports"], "see docs/adr on the layers"),
        Check("templates", [f"{programs}/djlint", *TEMPLATES, "--lint", "--quiet"], "the lines above name the places"),
        Check("formatting of templates", [f"{programs}/djlint", *TEMPLATES, "--check"], "make fix"),
        Check(
            "migrations",
            [python, "manage.py", "makemigrations", "--check", "--dry-run"],
            ".venv/bin/python manage.py makemigrations",
        ),
        Check(
            "generated reference",
            [python, "manage.py", "build_docs", "--check"],
            ".venv/bin/python manage.py build_docs",
        ),
        Check("crash matrix", [python, "-m", "tests.crash.page", "--check"], ".venv/bin/python -m tests.crash.page"),
        Check("translations", [python, "scripts/messages.py", "--check"], ".venv/bin/python scripts/messages.py"),
        Check("built assets", ["node", str(FRONTEND / "build.mjs"), "--check"], "node frontend/build.mjs"),
    )
    with ThreadPoolExecutor(1) as beside:
        typed = beside.submit(_passes, types)
        _ensure_node_modules()
        failed = [item for item in others if not _passes(item)]
        failed += [] if typed.result() else [types]
    _report_long_modules()
    if failed:
        print_line("")
        for item in failed:
            print_line(f"{item.says}: {item.cure}")
        print_line(f"\n{len(failed)} of {1 + len(others)} checks say no.")
        return 1
    print_line(f"\nAll {1 + len(others)} checks pass.")
    return 0


def fix_style() -> int:
    venv.ensure_venv(dev=True)
    ruff, djlint = (str(venv.VENV / "bin" / name) for name in ("ruff", "djlint"))
    subprocess.run([ruff, "check", "--fix", "."], cwd=ROOT)
    subprocess.run([djlint, *TEMPLATES, "--reformat", "--quiet"], cwd=ROOT)  # 1 when it changed something
    return subprocess.run([ruff, "format", "."], cwd=ROOT).returncode


def _passes(item: Check) -> bool:
    begun = time.monotonic()
    # The data of a running hub is left alone, and its settings say nothing about the code.
    env = os.environ | {"TOOLHUB_DATA_DIR": str(ROOT / ".testenv" / "check"), "TOOLHUB_ENV_FILE": ""}
    done = subprocess.run(
        item.command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = [done.stdout.rstrip()] if done.returncode else []
    lines += [f"[{time.monotonic() - begun:6.1f} s] {'NO ' if done.returncode else 'ok '} {item.says}"]
    print_line("\n".join(lines))  # in one piece: another check may end at the same time
    return done.returncode == 0


def _report_long_modules() -> None:
    """For who reads: a long module may hold two nouns. It says no to nobody, because a cut at a line makes halves without a name."""
    tracked = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.split()
    lengths = {name: len((ROOT / name).read_bytes().splitlines()) for name in tracked if (ROOT / name).exists()}
    long = sorted((name for name, lines in lengths.items() if lines > LONG_MODULE), key=lambda name: -lengths[name])
    said = ", ".join(f"{name} ({lengths[name]})" for name in long)
    print_line(f"           {len(long)} modules of more than {LONG_MODULE} lines{': ' if long else ''}{said}")


def _ensure_node_modules() -> None:
    """The packages that build the assets; nothing at run time comes from npm."""
    if shutil.which("npm") is None:
        packages.ensure_packages("nodejs", "npm", purpose="Comparing the built assets")
    if shutil.which("msgfmt") is None:
        packages.ensure_packages("gettext", purpose="Comparing the translations")
    lock = FRONTEND / "package-lock.json"
    stamp = FRONTEND / "node_modules" / ".toolhub-lock"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    with announce_step("installing the packages that build the assets", "packages that build the assets installed"):
        run_program(["npm", "ci", "--no-audit", "--no-fund"], cwd=FRONTEND)
    stamp.write_text(digest)
