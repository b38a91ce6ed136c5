"""Messages: whether every sentence of the console is translated.

``python scripts/messages.py`` extracts the sentences into ``locale/``, keeps what is translated, and compiles.
``--check`` changes nothing and exits 1 when a sentence is missing, untranslated or fuzzy, or the compiled file is old.
Needs the gettext tools (``apt-get install gettext``).
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.sentences import collect_sentences  # noqa: E402

LOCALE = ROOT / "locale"
LANGUAGES = ["zh_Hans"]
TEMPLATES = "sentences.json"  # those with values, which pages know again
SOURCES = ["templates", "kernel", "toolhub", "evidence", "access", "registry", "llm", "invocations"]
# changes with every run, and says nothing
DATES = re.compile(r'^"POT-Creation-Date: .*\n', re.MULTILINE)


def collect_problem_texts() -> set[str]:
    """What the classes of problems say to people: title, cause and cure, which are plain strings in the sources."""
    found = set()
    for path in (path for name in SOURCES for path in (ROOT / name).rglob("problems.py")):
        for cls in ast.walk(ast.parse(path.read_text())):
            if isinstance(cls, ast.ClassDef):
                found.add((ast.get_docstring(cls) or "").partition("\n")[0])
                for node in cls.body:
                    match node:
                        case ast.Assign(targets=[ast.Name(id="cause" | "cure")], value=ast.Constant(value=str(text))):
                            found.add(text)
    return found


def extract_messages(workspace: Path) -> Path:
    """A fresh locale folder, made from the committed one and the sources."""
    for name in SOURCES:
        (workspace / name).symlink_to(ROOT / name)
    said = collect_sentences()
    marked = [f"gettext_noop({text!r})\n" for text in sorted(collect_problem_texts() | said - {""})]
    (workspace / "texts_of_problems.py").write_text("".join(marked))
    fresh = workspace / "locale"
    shutil.copytree(LOCALE, fresh)
    os.chdir(workspace)  # makemessages takes the folder `locale` where it stands
    settings.configure(USE_I18N=True, INSTALLED_APPS=[])
    django.setup()
    options = {"symlinks": True, "no_location": True, "no_obsolete": True, "no_wrap": True, "verbosity": 0}
    call_command("makemessages", locale=LANGUAGES, **options)
    for po in fresh.glob("*/LC_MESSAGES/django.po"):
        po.write_text(DATES.sub("", po.read_text()))
        subprocess.run(["msgfmt", "--check", "-o", str(po.with_suffix(".mo")), str(po)], check=True)
    templates = sorted(text for text in said if "{0}" in text)
    (fresh / TEMPLATES).write_text(json.dumps(templates, indent=0, ensure_ascii=False) + "\n")
    return fresh


def find_untranslated(po: Path) -> list[str]:
    """The sentences without a translation, or with one that gettext only guessed."""
    keep = ["msgattrib", "--no-wrap", "--no-obsolete"]
    texts = [
        subprocess.run([*keep, flag, str(po)], check=True, capture_output=True, text=True).stdout
        for flag in ("--untranslated", "--only-fuzzy")
    ]
    return [line for text in texts for line in re.findall(r'^msgid "(.+)"$', text, re.MULTILINE)]


def main() -> int:
    check = "--check" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        fresh = extract_messages(Path(folder))
        complaints = [
            f"Not translated: {text}" for po in fresh.glob("*/LC_MESSAGES/django.po") for text in find_untranslated(po)
        ]
        for path in [fresh / TEMPLATES, *sorted(fresh.glob("*/LC_MESSAGES/django.?o"))]:
            committed = LOCALE / path.relative_to(fresh)
            if committed.exists() and committed.read_bytes() == path.read_bytes():
                continue
            if check:
                complaints.append(f"{committed.relative_to(ROOT)} is not up to date: run python scripts/messages.py")
            else:
                shutil.copyfile(path, committed)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
