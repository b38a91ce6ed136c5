"""Object trials: is what an object does while it is imported and made seen, and is nothing concluded from what was not?"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest

from unitools.command import object_trials
from unitools.command.object_trials import ObjectTrial, try_reference
from unitools.command.terminal import CannotRun
from unitools.command.trial_answers import check_answer
from unitools.object_descriptions import ObjectDescription
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


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os\nos.fork()", "os.fork"),
        ("import os\nos.forkpty()", "os.forkpty"),
        (
            "import multiprocessing, os\ncontext = multiprocessing.get_context('spawn')\ncontext.Process(target=os.getpid).start()",
            "-c from multiprocessing",
        ),
        ("import os\nos.posix_spawn('/bin/true', ['true'], {})", "/bin/true"),
    ],
)
def test_the_usual_ways_to_start_a_program_are_refused(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "shop.py").write_text(f"{code}\n{PURE}")

    found = look_at(tmp_path).seen

    assert found["failed"]["type"] == "ProgramRefused"
    assert told in found["starts"][0]


@pytest.mark.req("BRING-4")
def test_programs_are_refused_also_after_the_object_is_made(tmp_path: Path) -> None:
    ran, site = tmp_path / "ran", tmp_path / "site"
    site.mkdir()
    (tmp_path / "own").mkdir()
    (site / "shop.py").write_text(
        "import os\n\n\nclass Tool:\n    def __getattr__(self, name):\n"
        f"        if name == 'func':\n            os.system('touch {ran}')\n        raise AttributeError(name)\n\n\ntool = Tool()\n"
    )

    try_reference("shop:tool", [tmp_path / "own", site], [], ObjectChoices())

    assert not ran.exists()


@pytest.mark.req("BRING-4")
def test_no_file_of_a_package_stands_in_for_one_of_ours(tmp_path: Path) -> None:
    own, site = tmp_path / "own", tmp_path / "site"
    own.mkdir()
    (site / "unitools").mkdir(parents=True)
    for place in (site / "unitools" / "__init__.py", site / "sitecustomize.py"):
        place.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(3)\n")
    (site / "a_shop.py").write_text(PURE)
    (own / "shop.py").write_text("from a_shop import f\n")

    trial = try_reference("shop:f", [own, site], [], ObjectChoices())

    assert trial.seen["stage"] == "describe"
    assert not (tmp_path / "ran").exists()


FORGED: dict[str, Any] = {
    "stage": "describe", "starts": [], "reads": {}, "is_class": False, "is_own": True, "package": "", "unknown": [],
    "distributions": {"pydantic": version("pydantic")}, "env_vars": [], "digest": "sha256:" + "0" * 64,
    "description": ObjectDescription("function", "f", "Say it.", {"type": "object"}, {}).to_json(),
    "scan": {"environment": {}, "hosts": {}, "installs": {}, "imports": [], "acts": False, "is_whole": True},
}  # fmt: skip


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    "changes",
    [
        {"stage": "x"},
        {"starts": [1]},
        {"reads": []},
        {"distributions": {"pydantic": "0.0.1"}},
        {"distributions": {"a-package-that-nobody-has": "1.0"}},
        {"package": "a-package-that-nobody-has"},
        {"description": {}},
        {"description": FORGED["description"] | {"framework": "mine"}},
        {"description": FORGED["description"] | {"env_vars": [{"name": 1}]}},
        {"scan": {"environment": {}}},
        {"failed": "no"},
    ],
)
def test_what_no_trial_says_is_not_believed(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(CannotRun, match="The process that tried it"):
        check_answer(FORGED | changes, [tmp_path], sys.path)


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize("said", [[], None, {}, {"stage": "describe"}, {"listed": []}])
def test_an_answer_of_another_shape_is_told(tmp_path: Path, said: Any) -> None:
    with pytest.raises(CannotRun, match="did not say what such a process says"):
        check_answer(said, [tmp_path], sys.path)


@pytest.mark.req("BRING-4")
def test_what_is_known_better_is_not_taken_from_the_answer(tmp_path: Path) -> None:
    seen = check_answer(FORGED, [tmp_path], sys.path)

    assert seen["digest"] == ObjectDescription("function", "f", "Say it.", {"type": "object"}, {}).digest
    assert ObjectTrial("shop:f", seen, is_here=False).is_own is False


@pytest.mark.req("BRING-4")
def test_what_a_trial_prints_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_trials, "MAX_OUTPUT_BYTES", 1 << 20)
    (tmp_path / "shop.py").write_text("import os\nfor _ in range(4096):\n    os.write(2, b'x' * 65536)\n")

    assert look_at(tmp_path).seen["failed"]["message"] == "[Errno 27] File too large"


@pytest.mark.req("BRING-4")
def test_a_trial_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_trials, "TRY_WITHIN_S", 1)
    (tmp_path / "shop.py").write_text("import signal\nsignal.pause()\n")

    with pytest.raises(CannotRun, match="within 1 seconds"):
        look_at(tmp_path)
