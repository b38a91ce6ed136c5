"""Is every sentence of the console translated?

``python scripts/messages.py`` extracts the sentences into ``locale/``, keeps what is translated, and compiles.
``--check`` changes nothing and exits 1 when a sentence is missing, untranslated or fuzzy, or the compiled file is old.
Needs the gettext tools (``apt-get install gettext``).
"""

from __future__ import annotations

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
LOCALE = ROOT / "locale"
LANGUAGES = ["zh_Hans"]
SOURCES = ["templates", "toolhub", "evidence", "access", "registry", "invocations"]
# changes with every run, and says nothing
DATES = re.compile(r'^"POT-Creation-Date: .*\n', re.MULTILINE)


def extract(workspace: Path) -> Path:
    """A fresh locale folder, made from the committed one and the sources."""
    for name in SOURCES:
        (workspace / name).symlink_to(ROOT / name)
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
    return fresh


def untranslated(po: Path) -> list[str]:
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
        fresh = extract(Path(folder))
        complaints = [
            f"Not translated: {text}" for po in fresh.glob("*/LC_MESSAGES/django.po") for text in untranslated(po)
        ]
        for path in sorted(fresh.glob("*/LC_MESSAGES/django.?o")):
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
