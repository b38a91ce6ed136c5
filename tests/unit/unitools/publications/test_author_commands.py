"""Author commands: do ``unitools check``, ``run``, ``push`` and ``catalogue`` answer an author, and end with the right status?"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.http_server import local_server
from unitools.capsules import open_capsule
from unitools.command import main

if TYPE_CHECKING:
    from unitools.capsules import Capsule

SHAPES = Path(__file__).resolve().parents[3] / "universes" / "shapes.py"
KEY = "hub_a-key-that-nobody-may-see"
TAKEN: dict[str, Any] = {
    "ok": True,
    "error": None,
    "warnings": [],
    "data": {
        "id": "cap_1",
        "digest": "sha256:1",
        "versions": [{"tool": "acme.shapes.adds", "version": "1.0.0", "review_state": "submitted"}],
    },
}
Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLHUB_URL", "TOOLHUB_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def catalogue(folder: Path, **changes: Any) -> Path:
    (folder / "search.py").write_text("def run(q): return q\n")
    entry = {"tool_id": "search", "description": "Search.", "implementation_path": "search.py"} | changes
    (folder / "capabilities.json").write_text(json.dumps([entry]))
    return folder / "capabilities.json"


@pytest.mark.req("UNI-2")
def test_check_lists_the_tools_and_says_what_a_dialect_cannot(capsys: Said) -> None:
    assert main(["check", str(SHAPES)]) == 0

    said = capsys.readouterr().out
    assert "Order__make  (acme.shapes.order__make): Make an order." in said
    assert "shown to no model: counter from counter" in said
    assert "gemini" in said
    assert said.endswith("9 tools, 0 errors.\n")


def test_check_prints_the_manifests_that_a_hub_would_get(capsys: Said) -> None:
    assert main(["check", str(SHAPES), "--manifests", "--as", "other.name", "--version", "3.0.0"]) == 0

    manifests = json.loads(capsys.readouterr().out)
    assert [each["version"] for each in manifests] == ["3.0.0"] * 9
    assert manifests[1]["id"] == "other.name.adds"


def test_check_ends_with_2_where_a_hub_would_refuse(tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "needs_uid.py"
    file.write_text(
        "from typing import Annotated\nfrom unitools import Injected, Universe\nu = Universe('a.b', version='1.0.0')\n"
        "@u.tool\ndef f(uid: Annotated[str, Injected()]) -> str:\n    '''Tell.'''\n    return uid\n"
    )

    assert main(["check", str(file)]) == 2
    assert "error: needs_uid.py:4: f: Nobody gives 'uid' in a hub." in capsys.readouterr().out
    assert main(["check", str(file), "--local"]) == 0


REACHES = """
from unitools import Universe

u = Universe("acme.quotes", version="1.0.0")


@u.tool(side_effect="Network")
def get_quote(symbol: str) -> str:
    'The latest price of a share.'
    return symbol
"""


@pytest.mark.req("TOOLS-8")
def test_check_says_what_a_hub_would_with_tool_file_and_line(tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "quotes.py"
    file.write_text(REACHES)

    assert main(["check", str(file)]) == 2

    said = capsys.readouterr().out
    assert "error: quotes.py:7: get_quote /capabilities/net: side_effect is Network, but no net" in said
    assert "warning: quotes.py:7: get_quote /ttl_seconds: The name of the tool looks like a quote" in said
    assert said.endswith("1 tool, 1 error.\n")


def test_the_decorator_says_how_long_an_answer_stays_fresh(tmp_path: Path, capsys: Said) -> None:
    file = tmp_path / "quotes.py"
    file.write_text(REACHES.replace('side_effect="Network"', "ttl_seconds=60"))

    assert main(["check", str(file)]) == 0
    assert "ttl_seconds" not in capsys.readouterr().out
    assert main(["check", str(file), "--manifests"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["ttl_seconds"] == 60


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero (line 1 of broken.py)"),
        ("from unitools import Universe\nu = Universe()\n@u.tool\ndef f(*a): ...\n", "cannot be a tool"),
        ("from unitools import Universe\nu = Universe()\n", "--as"),
    ],
)
def test_what_cannot_be_checked_says_why(tmp_path: Path, capsys: Said, text: str, says: str) -> None:
    (tmp_path / "broken.py").write_text(text)

    assert main(["check", str(tmp_path / "broken.py")]) == 1
    assert says in capsys.readouterr().err


@pytest.mark.req("UNI-7")
def test_run_prints_the_answer_as_json(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["run", str(SHAPES), "adds", '{"a": 2}']) == 0
    assert capsys.readouterr().out == "2.5\n"
    monkeypatch.setattr("sys.stdin", io.StringIO('{"name": "Ada", "style": "long"}'))
    assert main(["run", str(SHAPES), "greets", "-"]) == 0
    assert capsys.readouterr().out == '"您好 Ada"\n'


@pytest.mark.req("UNI-7")
def test_run_ends_with_2_where_the_answer_is_no(capsys: Said) -> None:
    assert main(["run", str(SHAPES), "adds", '{"a": "x"}']) == 2
    assert capsys.readouterr().err.startswith("invalid_arguments: ")
    assert main(["run", str(SHAPES), "ends", '{"how": "out of stock"}']) == 2
    assert '"code": "OUT_OF_STOCK"' in capsys.readouterr().err


def test_run_gives_what_is_injected_from_the_context(capsys: Said) -> None:
    context = {"config.rate": "1.5", "secret.SHOP_KEY": "four", "call.currency": "EUR"}

    assert main(["run", str(SHAPES), "is_set_up", '{"question": "?"}', "--context", json.dumps(context)]) == 0
    assert json.loads(capsys.readouterr().out)["key_length"] == 4


@pytest.mark.parametrize("rest", [["nobody"], ["adds", "{"], ["adds", "[]"], ["adds", "{}", "--context", "7"]])
def test_run_needs_a_tool_and_objects(rest: list[str], capsys: Said) -> None:
    assert main(["run", str(SHAPES), *rest]) == 1
    assert capsys.readouterr().err


def pushed(body: bytes) -> Capsule:
    return open_capsule(body)


def test_push_sends_one_capsule_with_the_key_of_the_environment(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLHUB_API_KEY", KEY)
    with local_server() as hub:
        hub.status, hub.document = 201, TAKEN
        assert main(["push", str(SHAPES), "--hub", hub.url]) == 0

    (sent,) = hub.heard
    capsule = pushed(sent.body)
    assert (sent.method, sent.path) == ("POST", "/api/v1/capsules")
    assert (sent.headers["content-type"], sent.headers["authorization"]) == ("application/zip", f"Bearer {KEY}")
    assert capsule.package == "acme_shapes"
    assert len(capsule.manifests) == 9
    assert "acme_shapes/unitools_entries.py" in capsule.files
    said = capsys.readouterr()
    assert "acme.shapes.adds 1.0.0: submitted" in said.out
    assert KEY not in said.out + said.err


def test_push_says_what_the_hub_refuses_and_takes_its_key_from_a_file(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    error = {
        "code": "INVALID_ARGUMENT",
        "reason": "MANIFEST.INVALID",
        "message": "It cannot be registered.",
        "retryable": "no",
        "remedy": "Mend it.",
        "details": {
            "tool": "acme.shapes.adds",
            "findings": [{"pointer": "/tags", "message": "Too many.", "severity": "error"}],
        },
    }
    with local_server() as hub:
        hub.status, hub.document = 422, TAKEN | {"ok": False, "error": error}
        assert main(["push", str(SHAPES), "--hub", hub.url, "--api-key-file", str(tmp_path / "key")]) == 2

    assert hub.heard[0].headers["authorization"] == f"Bearer {KEY}"
    said = capsys.readouterr().err
    assert "MANIFEST.INVALID: It cannot be registered. Mend it." in said
    assert re.search(r"error: shapes\.py:\d+: adds /tags: Too many\.", said)


@pytest.mark.parametrize(("status", "ends"), [(401, 1), (422, 2), (409, 2), (429, 1), (503, 1)])
def test_push_ends_with_2_where_the_answer_about_the_package_is_no(
    status: int, ends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLHUB_API_KEY", KEY)
    error = {"code": "CONFLICT", "reason": "X.Y", "message": "No.", "retryable": "no", "remedy": "Another."}
    with local_server() as hub:
        hub.status, hub.document = status, TAKEN | {"ok": False, "error": error}
        assert main(["push", str(SHAPES), "--hub", hub.url]) == ends


def test_push_needs_a_hub_and_a_key(capsys: Said) -> None:
    assert main(["push", str(SHAPES), "--hub", "http://127.0.0.1:1"]) == 1
    assert "TOOLHUB_API_KEY" in capsys.readouterr().err
    assert main(["push", str(SHAPES)]) == 1
    assert "--hub URL" in capsys.readouterr().err


def test_the_key_is_no_argument(capsys: Said) -> None:
    with pytest.raises(SystemExit):
        main(["push", str(SHAPES), "--api-key", KEY])

    assert "unrecognized arguments: --api-key" in capsys.readouterr().err


@pytest.mark.req("SVC-2")
def test_a_catalogue_is_printed_as_manifests_or_brought_to_a_hub(
    tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = catalogue(tmp_path, owner="nobody")
    assert main(["catalogue", str(file), "--as", "old.tools"]) == 0
    said = capsys.readouterr()
    assert [each["id"] for each in json.loads(said.out)] == ["old.tools.search"]
    assert "warning: search.py:1: search /owner" in said.err

    monkeypatch.setenv("TOOLHUB_API_KEY", KEY)
    with local_server() as hub:
        hub.status, hub.document = 201, TAKEN
        assert main(["catalogue", str(file), "--as", "old.tools", "--hub", hub.url]) == 0
    assert set(pushed(hub.heard[0].body).files) == {"old_tools/__init__.py", "old_tools/search.py"}


@pytest.mark.req("SVC-2", "TOOLS-8")
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import json\n\ndef run(text): return text\n", "error: search.py:3: search /implementation/entry: "),
        ("def runs(q): return q\n", "error: search.py: search /implementation/entry: "),
    ],
)
def test_an_entry_that_a_hub_would_refuse_is_found_with_its_file_and_line(
    source: str, says: str, tmp_path: Path, capsys: Said
) -> None:
    file = catalogue(tmp_path, parameters_schema={"type": "object", "properties": {"q": {"type": "string"}}})
    (tmp_path / "search.py").write_text(source)

    assert main(["catalogue", str(file), "--as", "old.tools"]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.req("SVC-2")
def test_a_catalogue_with_something_wrong_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLHUB_API_KEY", KEY)
    with local_server() as hub:
        file = catalogue(tmp_path, implementation_path="../elsewhere.py")
        assert main(["catalogue", str(file), "--as", "old.tools", "--hub", hub.url]) == 2
        assert main(["catalogue", str(tmp_path / "none.json"), "--as", "old.tools", "--hub", hub.url]) == 1

    assert hub.heard == []
