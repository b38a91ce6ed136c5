"""The in-process broker: is a message that waits for a place delivered as soon as there is one, in the embedded shape?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from kombu import Connection

from toolhub.brokers import in_process
from toolhub.brokers.in_process import MessageCounter, Transport

if TYPE_CHECKING:
    import pytest


def test_a_place_that_is_free_again_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with Connection("memory://place", transport=Transport) as connection:
        queue = connection.SimpleQueue("places")
        queue.consumer.qos(prefetch_count=1)
        for number in range(2):
            queue.put(number)
        first = queue.get(timeout=60)
        message_counter, rung = MessageCounter(), []

        def ack_meanwhile(heard: int, _: float) -> None:
            first.ack()
            rung.append(message_counter.heard() != heard)

        monkeypatch.setattr(message_counter, "wait", ack_meanwhile)
        monkeypatch.setattr(in_process, "message_counter", message_counter)
        second = queue.get(timeout=60)

    assert (second.payload, rung) == (1, [True])


def test_who_waits_for_the_bell_hears_it_from_another_thread() -> None:
    message_counter = MessageCounter()
    waits = threading.Thread(
        target=message_counter.wait, args=(message_counter.heard(), threading.TIMEOUT_MAX), daemon=True
    )
    waits.start()

    message_counter.count_message()

    waits.join(timeout=60)
    assert not waits.is_alive()
