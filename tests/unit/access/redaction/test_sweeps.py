"""Sweeps: does a placeholder tell two values apart, and name one the same wherever it stands?"""

from __future__ import annotations

from access.redaction import KINDS, Placeholders, Sweep


def test_one_value_has_one_placeholder_in_all_texts_and_another_value_has_another() -> None:
    sweep = Sweep(KINDS, Placeholders().name_hit)

    first = sweep.text("Write to ann@example.org and bob@example.org.")
    second = sweep.value({"to": ["bob@example.org"], "from": "ann@example.org"})

    assert first == "Write to [redacted:email 1] and [redacted:email 2]."
    assert second == {"to": ["[redacted:email 2]"], "from": "[redacted:email 1]"}
    assert sweep.counts == {"email": 4}


def test_what_no_detector_finds_stays_as_it_is() -> None:
    value = {"text": "nothing here", "count": 3, "list": [None, True, 1.5]}
    sweep = Sweep(KINDS, Placeholders().name_hit)

    assert sweep.value(value) == value
    assert sweep.counts == {}


def test_a_placeholder_is_nothing_that_a_detector_finds() -> None:
    once = Sweep(KINDS, Placeholders().name_hit).text("Card 4111 1111 1111 1111, IBAN DE89370400440532013000")
    again = Sweep(KINDS, Placeholders().name_hit)

    assert again.text(once) == once == "Card [redacted:card 1], IBAN [redacted:iban 1]"
