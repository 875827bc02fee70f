"""How many connections a second are taken (KIP-612)."""

from __future__ import annotations

from penstock.broker.network.rules.connection_rates import UNLIMITED, ConnectionRates, ConnectionThrottle

HOST = "10.0.0.1"


def limited(
    total: int = UNLIMITED, by_listener: dict[str, int] | None = None, protected: str | None = None
) -> ConnectionRates:
    rates = ConnectionRates()
    rates.set_limits(total=total, by_listener=by_listener or {}, protected_listener=protected)
    return rates


def connect(rates: ConnectionRates, count: int, *, listener: str = "A", now_ms: int = 0) -> list[int]:
    """The throttle times of so many connections at once."""
    outcomes = [rates.on_connection(HOST, listener, now_ms) for _ in range(count)]
    return [0 if outcome is None else outcome.throttle_time_ms for outcome in outcomes]


def test_without_a_limit_nothing_is_throttled() -> None:
    assert connect(limited(), 1000) == [0] * 1000


def test_above_the_rate_of_the_broker_each_waits_for_those_before_it() -> None:
    # Ten whole samples may be had at once.
    assert connect(limited(total=2), 24) == [0] * 20 + [500, 1000, 1500, 2000]


def test_a_listener_has_its_own_rate_and_the_longer_time_counts() -> None:
    rates = limited(total=4, by_listener={"A": 2})
    assert connect(rates, 21)[-1] == 500
    # The other listener has what is left of the broker's.
    assert connect(rates, 19, listener="B") == [0] * 19
    assert connect(rates, 1, listener="B")[0] > 0


def test_the_listener_between_brokers_has_no_part_in_the_rate_of_the_broker() -> None:
    rates = limited(total=1, by_listener={"INTERNAL": 2}, protected="INTERNAL")
    assert connect(rates, 20, listener="INTERNAL") == [0] * 20
    assert connect(rates, 10) == [0] * 10
    assert connect(rates, 1, listener="INTERNAL") == [500]


def test_a_connection_above_the_rate_of_its_address_is_closed_and_does_not_count() -> None:
    rates = limited(total=2)
    rates.set_quotas({HOST: 1.0})
    assert connect(rates, 10) == [0] * 10
    for _ in range(50):
        assert rates.on_connection(HOST, "A", 0) == ConnectionThrottle(1000, is_closed=True)
    rates.set_quotas({})
    assert connect(rates, 10) == [0] * 10


def test_the_default_is_for_addresses_without_a_quota_of_their_own() -> None:
    rates = ConnectionRates()
    rates.set_quotas({None: 1.0, HOST: 100.0})
    assert connect(rates, 50) == [0] * 50
    outcomes = [rates.on_connection("10.0.0.2", "A", 0) for _ in range(11)]
    assert outcomes[:10] == [None] * 10
    assert outcomes[10] is not None


def test_a_changed_limit_holds_at_once() -> None:
    rates = limited(total=1)
    assert connect(rates, 11)[-1] == 1000
    rates.set_limits(total=1000, by_listener={}, protected_listener=None)
    assert connect(rates, 10) == [0] * 10
