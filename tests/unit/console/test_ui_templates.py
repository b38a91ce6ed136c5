"""UI templates: do the templates keep the rules that the strict CSP and the people without JavaScript need?"""

from __future__ import annotations

import gettext
import gzip
import json
import re
from pathlib import Path

import pytest

from tests.support.templates import TEMPLATES, name_of

ROOT = Path(__file__).resolve().parents[3]
FRONTEND, STATIC = ROOT / "frontend", ROOT / "static" / "ui"
FORBIDDEN = {
    "an inline style": re.compile(r"<style|\sstyle\s*="),
    "an inline script": re.compile(r"<script(?![^>]*\ssrc=)"),
    "an event attribute": re.compile(r"\son[a-z]+\s*="),
    "an expression in an attribute": re.compile(r"hx-on|\bjs:|javascript:"),
    "an outside address": re.compile(r"""(?:src|href|action)=["']?(?:https?:)?//"""),
}
ICON = re.compile(r"""{% (?:icon|nothing|banner "\w+") "([a-z0-9-]+)\"""")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_templates_hold_nothing_that_the_csp_blocks(what: str) -> None:
    found = {name_of(path): FORBIDDEN[what].findall(path.read_text()) for path in TEMPLATES}

    assert {name: each for name, each in found.items() if each} == {}


def test_every_form_that_changes_something_has_a_csrf_token_and_works_without_a_script() -> None:
    for path in TEMPLATES:
        for form in re.findall(r"<form\b.*?</form>", path.read_text(), re.DOTALL):
            said = (name_of(path), head := form[: form.index(">")])
            if 'method="post"' in head:
                assert "{% csrf_token %}" in form, said
                assert "action=" in head, said
            else:
                assert "hx-post" not in form, said


def list_untranslatable(path: Path) -> list[str]:
    text = re.sub(
        r"{%\s*blocktrans.*?endblocktrans\s*%}|{#.*?#}|{%.*?%}|{{.*?}}|<(pre|code|kbd)\b.*?</\1>",
        " ",
        path.read_text(),
        flags=re.DOTALL,
    )
    shown = re.sub(r"<[^>]*>", "\n", text)
    allowed = {"toolhub", "English", "简体中文", "JSON", "curl", "v", "SHA-256"}
    return [
        line.strip()
        for line in shown.splitlines()
        if re.search(r"[A-Za-z]{2,}", line) and line.strip(" ·") not in allowed
    ]


def test_every_sentence_can_be_translated() -> None:
    found = {name_of(path): list_untranslatable(path) for path in TEMPLATES}

    assert {name: left for name, left in found.items() if left} == {}


def test_every_icon_that_is_used_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    used = {name for path in TEMPLATES for name in ICON.findall(path.read_text())}
    wording = (ROOT / "kernel" / "components" / "labels.py").read_text()
    used |= set(re.findall(r'\("(?:ok|warn|bad|hold|info|quiet)", "([a-z0-9-]+)"', wording))

    assert used - sprite == set()
    assert sprite == set((FRONTEND / "icons.txt").read_text().split())


def test_htmx_may_not_evaluate_code_nor_keep_pages_in_the_browser() -> None:
    base = (ROOT / "templates" / "base.html").read_text()
    config = json.loads(re.search(r"name=\"htmx-config\"\s+content='([^']+)'", base).group(1))  # type: ignore[union-attr]

    assert config["allowEval"] is False
    assert config["includeIndicatorStyles"] is False
    assert config["selfRequestsOnly"] is True
    assert config["disableInheritance"] is True
    assert config["historyCacheSize"] == 0
    assert {"code": "422", "swap": True} in config["responseHandling"]


@pytest.mark.parametrize(("name", "budget_kb"), [("app.css", 16), ("app.js", 30)])
def test_assets_stay_within_their_budget(name: str, budget_kb: int) -> None:
    assert len(gzip.compress((STATIC / name).read_bytes())) <= budget_kb * 1024


def test_the_lock_names_no_registry() -> None:
    assert "resolved" not in (FRONTEND / "package-lock.json").read_text()


def test_the_chinese_translation_is_whole() -> None:
    folder = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
    source = (folder / "django.po").read_text()
    with (folder / "django.mo").open("rb") as compiled:
        known = gettext.GNUTranslations(compiled)._catalog  # type: ignore[attr-defined]

    assert "#, fuzzy" not in source
    missing = re.findall(r'^msgid "(.+)"\n(?:msgid_plural ".+"\n)?msgstr(?:\[0\])? ""\n(?!")', source, re.MULTILINE)
    assert missing == []
    assert len(known) > 50
