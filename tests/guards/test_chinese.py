"""Chinese: do its sentences address their reader in one way, and is their punctuation that of Chinese?"""

from __future__ import annotations

import re
from pathlib import Path

CATALOGUE = Path(__file__).resolve().parents[2] / "locale/zh_Hans/LC_MESSAGES/django.po"
TRANSLATED = re.compile(r'^msgstr(?:\[\d\])? ((?:".*"\n?)+)', re.MULTILINE)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
HAN = "\u4e00-\u9fff"
# A half-width mark beside a Chinese character; three points in place of an ellipsis. A bracket may open a format: %(name)s.
HALF_WIDTH = re.compile(rf"[{HAN}][,;:!?()]|(?<!%)[,;:!?()][{HAN}]|[{HAN}]\.(?:\s|$)|\.\.\.")


def read_translations() -> list[str]:
    return ["".join(QUOTED.findall(found)) for found in TRANSLATED.findall(CATALOGUE.read_text(encoding="utf-8"))]


def test_readers_are_addressed_in_one_way() -> None:
    translations = read_translations()

    assert sum("你" in each for each in translations) > 50
    assert [each for each in translations if "您" in each] == []


def test_punctuation_is_full_width() -> None:
    assert [each for each in read_translations() if HALF_WIDTH.search(re.sub(r"%\(\w+\)[sd]", "", each))] == []
