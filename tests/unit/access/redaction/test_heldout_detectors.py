"""Held-out detectors: how well do the detectors do on texts that nobody has looked at while they were written?"""

from __future__ import annotations

from functools import cache

import pytest

from access.redaction import KINDS
from tests.support.redaction_heldout_corpus import CHINESE, HELD_OUT, TO_LOOK_AT, Maker, Text, texts
from tests.support.redaction_score import Score, score_of

MEASURED = ("email", "phone", "card", "cn_id", "us_ssn", "national_id", "iban", "address")
LEAST = dict.fromkeys(MEASURED, 0.97) | {"address": 0.85}


@cache
def score() -> Score:
    return score_of(texts(HELD_OUT), MEASURED)


@pytest.mark.req("TOOLS-25")
def test_the_seeds_of_the_test_are_not_those_that_are_looked_at() -> None:
    assert not set(HELD_OUT) & set(TO_LOOK_AT)
    assert set(MEASURED) <= set(KINDS)


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize("kind", MEASURED)
def test_almost_all_of_each_kind_is_found(kind: str) -> None:
    assert score().labels[kind] >= 150
    assert score().recall(kind) >= LEAST[kind]


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize("kind", MEASURED)
def test_what_is_found_of_each_kind_is_almost_always_that(kind: str) -> None:
    assert score().precision([kind]) >= 0.95


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize("form", CHINESE)
def test_a_chinese_address_is_found_in_each_form_in_which_people_write_it(form: str) -> None:
    makers = [Maker("zh_CN", seed) for seed in HELD_OUT]
    corpus = []
    for maker in makers:
        for before, after in (("地址：", "，谢谢"), ("我家住在", "。电话在下面"), ("", "\n"), ("请寄到", "收")):
            address = maker.chinese_address(form)
            corpus.append(Text(before + address + after, labels=[(len(before), len(before) + len(address), "address")]))

    assert score_of(corpus, ("address",)).recall("address") >= 0.95
