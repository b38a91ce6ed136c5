"""Object trials: is what an object does while it is imported and made seen, and is nothing concluded from what was not?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unitools.command.object_trials import ObjectTrial, try_reference
from unitools.object_drafts import ObjectChoices

if TYPE_CHECKING:
    from pathlib import Path

PURE = "import math\n\n\ndef f(word: str) -> str:\n    'Say it.'\n    return word * math.floor(1.5)\n"


def look_at(folder: Path, reference: str = "shop:f", choices: ObjectChoices | None = None) -> ObjectTrial:
    return try_reference(reference, [folder], [], choices or ObjectChoices())


@pytest.mark.req("BRING-4")
def test_an_effect_is_guessed_from_all_files_of_the_author_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(f"from shop.parts import f\nfrom . import parts\n{PURE}")
    (tmp_path / "shop" / "parts.py").write_text(PURE)

    read = look_at(tmp_path)
    (tmp_path / "shop" / "parts.py").write_text(f"{PURE}# {'x' * (1 << 20)}\n")
    too_large = look_at(tmp_path)

    assert (read.guessed_effect, too_large.guessed_effect) == ("None", "Write")


@pytest.mark.req("BRING-4")
def test_what_is_read_while_a_module_is_imported_is_seen_also_where_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        f"import os\nREGION = os.environ.get('REGION')\nHOME = os.environ['HOME']\n{PURE}"
    )

    trial = look_at(tmp_path, choices=ObjectChoices(environment={"REGION": "eu"}))

    assert trial.read_at_import == {"REGION"}


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("reference", "code", "is_gone"),
    [
        ("shop:f", "", True),
        ("shop:F.of", "class F: pass", True),
        ("shop.parts:f", "", True),
        ("shop:f", "def __getattr__(name): raise ValueError(name)", False),
        ("shop:f", "def __getattr__(name): return None.of", False),
        ("shop:f", "import a_module_that_nobody_has", False),
        ("shop:f", "raise AttributeError('f')", False),
    ],
)
def test_an_object_is_gone_only_where_its_name_is(tmp_path: Path, reference: str, code: str, *, is_gone: bool) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(code)

    assert look_at(tmp_path, reference).is_gone is is_gone
