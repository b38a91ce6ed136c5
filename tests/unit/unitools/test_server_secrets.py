"""Server secrets: does a server that is brought again keep those that were named, each tool its own, and is no value shown?"""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from registry.versions.manifest_checks import validate_document
from tests.support.mcp_servers import HONEST, listing_of, make_server
from unitools.command import main
from unitools.command.object_choices import read_options
from unitools.command.terminal import CannotRun

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command with more options, for one server of which a listing was taken."""
    monkeypatch.chdir(tmp_path)
    Path("taken.json").write_bytes(listing_of().to_bytes())
    usual = ["bring", "mcp", "a-server==1.0", "--listing", "taken.json", "--script", "a-server", "--group", "mcp.a"]
    return lambda *more: main([*usual, *more])


def path_of(tool: str) -> Path:
    return Path(f"mcp_a/manifests/mcp.a.{tool}.json")


def read(tool: str) -> dict[str, Any]:
    return dict(json.loads(path_of(tool).read_text()))


def environment_of(tool: str) -> dict[str, str]:
    """What each variable of its server holds: a value, or a secret with a $ in front."""
    environment = read(tool)["implementation"]["server"].get("environment", [])
    return {each["name"]: each["value"] if "value" in each else f"${each['secret']}" for each in environment}


def errors_of(tool: str) -> list[str]:
    return [each.message for each in validate_document(read(tool)) if each.severity == "error"]


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_second_run_hands_over_the_secrets_of_the_first(bring: Callable[..., int]) -> None:
    assert bring("--tool", "say", "--environment", "ZONE=eu", "--secret", "API_KEY") == 0
    assert bring("--tool", "Echo-Text") == 0
    assert bring("--tool", "lie", "--secret", "OTHER_KEY") == 0

    assert environment_of("echo_text") == {"ZONE": "eu", "API_KEY": "$API_KEY", "OTHER_KEY": "$OTHER_KEY"}
    assert environment_of("say") == environment_of("lie") == environment_of("echo_text")
    for tool in ("echo_text", "say", "lie"):
        assert [each["name"] for each in read(tool)["secrets"]] == ["API_KEY", "OTHER_KEY"]
        assert errors_of(tool) == []


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_secret_that_is_named_later_leaves_each_tool_its_own_environment(bring: Callable[..., int]) -> None:
    assert bring("--tool", "Echo-Text", "--tool", "say", "--environment", "ZONE=eu", "--environment", "KEEP=1") == 0
    mine = read("say")
    mine["implementation"]["server"]["environment"] = [
        {"name": "ZONE", "value": "of a person"},
        {"name": "MORE", "value": "x"},
        {"name": "API_KEY", "value": ""},
    ]
    path_of("say").write_text(json.dumps(mine))

    assert bring("--secret", "API_KEY") == 0

    assert environment_of("echo_text") == {"ZONE": "eu", "KEEP": "1", "API_KEY": "$API_KEY"}
    assert environment_of("say") == {"ZONE": "of a person", "MORE": "x", "API_KEY": "$API_KEY"}
    for tool in ("echo_text", "say"):
        assert [each["name"] for each in read(tool)["secrets"]] == ["API_KEY"]
        assert errors_of(tool) == []


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_server_that_is_started_again_finds_a_text_in_the_place_of_its_secret(
    bring: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_server(tmp_path / "wheels", f"import os\nassert os.environ['API_KEY'] == 'not-a-secret'\n{HONEST}", "1.1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    assert bring("--tool", "say", "--secret", "API_KEY") == 0

    done = main(["bring", "mcp", "a-server==1.1", "--group", "mcp.a", "--run-here"])

    assert done == 0, capsys.readouterr().err
    assert (read("say")["origin"]["version"], environment_of("say")) == ("1.1", {"API_KEY": "$API_KEY"})


@pytest.mark.req("BRING-2", "SVC-6")
@pytest.mark.parametrize(
    "given", ["PGPASSWORD=s3cr3t-of-mine", "GITHUB_PAT=s3cr3t-of-mine", f"GITHUB=ghp_{'s3cr3tBdE6gH9' * 3}"]
)
def test_a_value_that_is_a_secret_is_no_environment(
    bring: Callable[..., int], capsys: pytest.CaptureFixture[str], given: str
) -> None:
    assert bring("--tool", "say", "--environment", given) == 1

    said = capsys.readouterr().err
    assert f"--environment {given.partition('=')[0]} looks like a secret" in said
    assert "s3cr3t" not in said


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_server_is_started_with_what_only_sounds_like_a_secret(bring: Callable[..., int]) -> None:
    given = {"AUTH_MODE": "none", "REDIS_KEY_PREFIX": "shop:", "DISABLE_AUTH": "true", "HTTP_AUTH": "off"}

    assert bring("--tool", "say", *(f"--environment={name}={value}" for name, value in given.items())) == 0

    assert environment_of("say") == given
    assert errors_of("say") == []


@pytest.mark.req("BRING-2", "SVC-6")
@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("API_TOKEN=s3cr3t-of-mine", "Say --secret API_TOKEN."),
        ("s3cr3t-of-mine", "such as API_KEY"),
        ("s3cr3tOfMine", "such as API_KEY"),
        ("S3CR3TOFMINE==", "such as API_KEY"),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [("mcp", "a-server==1.0", "--listing", "taken.json", "--script", "a"), ("remote", "https://a.example.org/mcp")],
)
def test_a_value_that_is_typed_for_a_name_is_not_shown(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: tuple[str, ...],
    typed: str,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    told = "NAME=bearer" if kind[0] == "remote" and "Say" not in told else told

    assert main(["bring", *kind, "--secret", typed]) == 1

    said = capsys.readouterr().err
    assert "A value never stands here." in said
    assert told in said
    assert "s3cr3t" not in said.lower()


@pytest.mark.req("BRING-4")
def test_a_value_that_is_typed_for_a_name_of_an_object_is_not_shown() -> None:
    typed = Namespace(secret=["API_TOKEN=s3cr3t-of-mine"], environment=[], inject=[], host=[], effect="")

    with pytest.raises(CannotRun, match=r"Say --secret API_TOKEN\.$") as refused:
        read_options(typed)

    assert "s3cr3t" not in str(refused.value)


@pytest.mark.req("BRING-2", "SVC-6")
def test_a_variable_in_small_letters_is_given_a_secret_in_capitals(bring: Callable[..., int]) -> None:
    names = ("api_key", "_authToken", "npm_config__auth")

    assert bring("--tool", "say", *(f"--secret={each}" for each in names)) == 0
    assert bring("--tool", "Echo-Text", "--secret", "API_KEY") == 0

    expected = {"api_key": "$API_KEY", "_authToken": "$AUTHTOKEN", "npm_config__auth": "$NPM_CONFIG__AUTH"}
    assert environment_of("say") == environment_of("echo_text") == expected | {"API_KEY": "$API_KEY"}
    for tool in ("say", "echo_text"):
        assert [each["name"] for each in read(tool)["secrets"]] == ["API_KEY", "AUTHTOKEN", "NPM_CONFIG__AUTH"]
        assert errors_of(tool) == []
