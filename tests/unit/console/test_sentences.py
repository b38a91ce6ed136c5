"""Sentences: does a page say what a service has refused in the language of the page, with the values in place?"""

from __future__ import annotations

import json

import pytest
from django.conf import settings
from django.utils import translation

from kernel.components.sentences import WORD_VALUES, describe_problem, translate_sentence
from kernel.problems import NotFound
from scripts.sentences import collect_sentences, is_sentence

CHINESE = "zh-hans"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("An agent cannot give itself a grant.", "智能体不能给自己授权。"),
        ("There is no agent with this id here.", "此处没有该 ID 的智能体。"),
        ("There is an agent with the name Berta {0} already.", "已有名为 Berta {0} 的智能体。"),
        ("Give a number from 1 to 90, or leave it empty.", "请填写 1 到 90 之间的数字，或留空。"),
        # A state has its label, and a sentence within a sentence is translated, too.
        ("This consent is revoked; it cannot become approved.", "此同意为已撤销；不能变为已批准。"),
        ("Aaron does not hold the permission consents.decide.", "Aaron 没有权限 consents.decide。"),
        (
            "The side effect is Write instead of Read; grants by effect reach it.",
            "副作用为“写入”，原为“读取”；按副作用给出的授权会涵盖它。",
        ),
        ("The tool touches a further kind of data: personal.", "该工具涉及新的数据类别：个人信息。"),
        ("There is an agent with the name key already.", "已有名为 key 的智能体。"),  # a name is no word of the hub
        ("Ask another operator to publish it.", "请其他操作员发布。"),  # a role has its Chinese name
        ("shop.pay cannot be called yet: Ask an operator to enable it.", "shop.pay 尚不能调用：请操作员启用它。"),
    ],
)
def test_a_refusal_is_said_in_the_language_of_the_page(said: str, shown: str) -> None:
    with translation.override("en"):
        assert translate_sentence(said) == said
    with translation.override(CHINESE):
        assert translate_sentence(said) == shown


def test_what_nobody_has_translated_and_what_people_wrote_stays_as_it_is() -> None:
    with translation.override(CHINESE):
        assert translate_sentence("Somebody wrote this as a reason.") == "Somebody wrote this as a reason."
        assert translate_sentence("") == ""


def test_a_value_of_several_lines_is_found_again() -> None:
    with translation.override(CHINESE):
        assert translate_sentence("A person has denied this call: no\nand no.") == "有人拒绝了此调用：no\nand no."


def test_of_two_sentences_that_fit_the_one_that_says_more_itself_is_meant() -> None:
    with translation.override(CHINESE):
        # Not "There is no model {0} here.", of a model with a strange name.
        assert translate_sentence("There is no model x in this tenant.") == "本租户没有模型 x。"
        assert translate_sentence("There is no model x here.") == "此处没有模型 x。"


def test_a_problem_says_what_would_help_in_the_same_language() -> None:
    problem = NotFound("There is no agent with this id here.", remedy="Ask an operator to give it.")
    with translation.override(CHINESE):
        assert describe_problem(problem) == "此处没有该 ID 的智能体。请操作员给予。"


def test_what_services_say_is_found_in_their_sources() -> None:
    found = collect_sentences()

    assert len(found) > 500
    assert "An agent cannot give itself a grant." in found
    assert {text for text in found if "{0}" in text} == set(
        json.loads((settings.LOCALE_PATHS[0] / "sentences.json").read_text())
    )
    assert not is_sentence("{0} is {1}.")  # it would be found in others


def test_sentences_with_words_for_values_are_those_that_services_say() -> None:
    known = json.loads((settings.LOCALE_PATHS[0] / "sentences.json").read_text(encoding="utf-8"))

    assert set(WORD_VALUES) - set(known) == set()
