"""Capability words: is what a tool may reach said so that a person understands it, with its code kept beside?"""

from __future__ import annotations

import pytest
from django.utils import translation

from kernel.components.capability_words import DOMAIN, capability_lines, capability_text, capability_texts, kept_text
from unitools.capabilities import TOP
from unitools.expressions import DOMAINS

ALL = {
    "fs": [
        {"path": "/data", "actions": ["create", "delete", "exec", "list", "read", "write"]},
        {"path": "/etc/hosts", "kind": "file", "actions": ["read"]},
    ],
    "net": [
        {"host": "api.example.com"},
        {"host": "*", "scheme": "http", "ports": ["8000-8100"], "methods": ["GET", "HEAD"]},
    ],
    "cidr": [{"cidr": "10.0.0.0/8", "ports": [5432]}],
    "browser": [{"host": "*.example.com", "actions": ["clipboard", "download", "navigate", "script", "upload"]}],
    "proc": ["/usr/bin/git"],
    "secrets": ["shop.key"],
    "tmp": 33_554_432,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tmp:33554432", "temporary files at most 32 MiB"),
        ("max_bytes_out:1048576", "size of the result at most 1 MiB"),
        ("fs:read:/data", "read files below /data"),
        ("fs:exec:/opt/x (file)", "run the file /opt/x"),
        ("net:https://api.example.com:443", "reach api.example.com by HTTPS"),
        ("net:http://*:8000-8100 GET,HEAD", "reach any host by HTTP on port 8000-8100 (GET, HEAD)"),
        ("cidr:tcp://[::/0]:1-65535", "reach [::/0] by TCP on any port"),
        ("browser", "open any page in a browser"),
        ("browser:upload:*", "upload files in a browser at any host"),
        ("proc:*", "start any program"),
        ("proc:/usr/bin/tool", "start the program /usr/bin/tool"),
        ("secret:*", "use any secret"),
        ("secret:shop.key", "use the secret shop.key"),
    ],
)
def test_a_capability_is_said_in_words(name: str, expected: str) -> None:
    assert capability_text(name) == expected


@pytest.mark.parametrize("name", ["", "fs:paint:/data", "fs:read", "net:nowhere", "browser:paint:*", "proc:", "soul:1"])
def test_what_has_no_words_is_shown_as_it_is(name: str) -> None:
    assert capability_text(name) == name


@pytest.mark.parametrize("document", [ALL, TOP.to_json()])
def test_everything_that_a_manifest_can_ask_for_has_words_in_both_languages(document: dict[str, object]) -> None:
    english = capability_lines(document)
    with translation.override("zh-hans"):
        chinese = capability_lines(document)

    assert english
    assert [each.code for each in english] == [each.code for each in chinese]
    assert [each.code for each in english if each.text == each.code] == []
    assert [each.text for each in chinese if not any("\u4e00" <= letter <= "\u9fff" for letter in each.text)] == []


@pytest.mark.parametrize(
    ("document", "english", "chinese"),
    [
        (
            {"limits": {"processes": 0, "artifacts": 0}},
            [("artifacts at most 0", "artifacts:0"), ("processes at most 0", "processes:0")],
            ["产出文件数不超过 0", "进程数不超过 0"],
        ),
        ({"tmp": None}, [("temporary files of any size", "tmp")], ["任意大小的临时文件"]),
        ({"tmp": None, "limits": {"tmp_bytes": 1024}}, [("temporary files at most 1 KiB", "tmp:1024")], None),
        ({"tmp": 0, "limits": {"tmp_bytes": 0}}, [], []),
        ({}, [], []),
    ],
)
def test_a_bound_of_nothing_and_scratch_space_without_a_bound_are_said(
    document: dict[str, object], english: list[tuple[str, str]], chinese: list[str] | None
) -> None:
    assert [tuple(each) for each in capability_lines(document)] == english
    with translation.override("zh-hans"):
        assert chinese in (None, [each.text for each in capability_lines(document)])


def test_several_are_joined_as_the_language_joins_them() -> None:
    names = "fs:read:/a, net:https://*:443"

    assert kept_text(names) == "read files below /a, reach any host by HTTPS"
    with translation.override("zh-hans"):
        assert "、" in kept_text(names)


def test_what_may_be_done_with_the_same_files_is_said_once() -> None:
    names = [
        "fs:list:/data",
        "fs:read:/data",
        "fs:read:/etc/hosts (file)",
        "fs:paint:/data",
        "fs:read:/a:b",
        "secret:*",
    ]

    assert capability_texts(names) == [
        "list, read files below /data",
        "read the file /etc/hosts",
        "fs:paint:/data",
        "read files below /a:b",
        "use any secret",
    ]


def test_every_kind_of_capabilities_has_a_word() -> None:
    assert set(DOMAIN) == set(DOMAINS)
