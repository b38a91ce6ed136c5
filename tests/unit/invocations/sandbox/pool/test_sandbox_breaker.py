from __future__ import annotations

from invocations.sandbox.pool.circuit_breaker import FAILURES, CircuitBreaker, CircuitState


def broken(now: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES):
        breaker.begin(now)
        breaker.failed(now, "no engine")
    return breaker


def test_a_few_failures_in_a_row_open_it_and_it_says_why() -> None:
    breaker = CircuitBreaker()
    for _ in range(FAILURES - 1):
        breaker.failed(0.0, "no engine")
    assert breaker.state(0.0) is CircuitState.CLOSED

    breaker.failed(0.0, "no engine")

    assert breaker.state(0.0) is CircuitState.OPEN
    assert not breaker.may_try(4.9)
    assert breaker.wait_s(1.0) == 4.0
    assert breaker.why == "no engine"


def test_a_success_between_failures_counts_from_the_start() -> None:
    breaker = CircuitBreaker()
    for _ in range(5 * FAILURES):
        breaker.failed(0.0, "")
        breaker.failed(0.0, "")
        breaker.succeeded()

    assert breaker.state(0.0) is CircuitState.CLOSED


def test_after_a_while_one_try_is_let_through_and_no_other_beside_it() -> None:
    breaker = broken()

    assert breaker.state(5.0) is CircuitState.HALF_OPEN
    assert breaker.may_try(5.0)
    breaker.begin(5.0)
    assert not breaker.may_try(5.0)

    breaker.succeeded()
    assert breaker.state(5.0) is CircuitState.CLOSED
    assert breaker.may_try(5.0)
    assert breaker.wait_s(5.0) == 0.0


def test_each_failed_try_doubles_the_wait_up_to_a_minute() -> None:
    breaker, now, waits = broken(), 0.0, []
    for _ in range(6):
        waits.append(breaker.wait_s(now))
        now += waits[-1]
        breaker.begin(now)
        breaker.failed(now, "still none")

    assert waits == [5, 10, 20, 40, 60, 60]


def test_what_was_begun_before_it_opened_does_not_lengthen_the_wait() -> None:
    breaker = broken()

    breaker.failed(1.0, "late")

    assert breaker.wait_s(1.0) == 4.0
