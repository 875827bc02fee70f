"""The checker of list-append: Elle's anomalies under Elle's names, and what of them Kafka allows."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from told_history import Told, found

from penstock.chaos.checkers.finding import Finding
from penstock.chaos.checkers.list_append import check_list_append
from penstock.chaos.histories.operation import EventType, Header, History
from penstock.protocol.structs import replace


def append(key: str, value: int) -> list[Any]:
    return ["append", key, value]


def read(key: str, *values: int) -> list[Any]:
    return ["r", key, list(values)]


SERIALIZABLE = Header(workload="list-append", transactions=True, isolation="serializable")


class Transactions(Told):
    def __init__(self) -> None:
        super().__init__(Header(workload="list-append", transactions=True))

    def txn(self, process: int, *micro: list[Any], type_: EventType = "ok", final: bool = False) -> int:
        self.start(process, *micro, final=final)
        return self.end(process, list(micro), type_)

    def start(self, process: int, *micro: list[Any], final: bool = False) -> int:
        asked = [["r", one[1], None] if one[0] == "r" else one for one in micro]
        return self.begin(process, "txn", asked, final=final)

    def finish(self, process: int, *micro: list[Any]) -> int:
        return self.end(process, list(micro))


def only(told: Told, type_: str, *beside: str, is_serializable: bool = False) -> Finding:
    history = told.history()
    checked = check_list_append(replace(history, header=SERIALIZABLE) if is_serializable else history)
    assert sorted(checked.counts) == sorted((type_, *beside))
    return found(checked)[type_]


@pytest.fixture
def told() -> Transactions:
    return Transactions()


def test_g1a_and_dirty_update(told: Transactions) -> None:
    aborted = told.txn(1, append("x", 1), type_="fail")
    committed = told.txn(2, append("x", 2))
    reader = told.txn(3, read("x", 1, 2))
    assert only(told, "G1a", "dirty-update").operations == (aborted, reader)
    assert only(told, "dirty-update", "G1a").operations == (aborted, committed)


def test_g1b_a_read_of_half_a_transaction(told: Transactions) -> None:
    writer = told.txn(1, append("x", 1), append("x", 2))
    reader = told.txn(2, read("x", 1))
    told.txn(3, read("x", 1, 2))
    finding = only(told, "G1b", "G-single", is_serializable=True)
    assert (finding.operations, finding.allowed) == ((writer, reader), False)
    assert only(told, "G1b", "G-single").allowed, "an open transaction of another may hold the last stable offset there"


def test_incompatible_order(told: Transactions) -> None:
    told.start(1, append("x", 1))
    told.txn(2, append("x", 2))
    told.finish(1, append("x", 1))
    first, second = told.txn(3, read("x", 1, 2)), told.txn(4, read("x", 2, 1))
    assert {*only(told, "incompatible-order").operations} == {first, second}


def test_duplicate_elements(told: Transactions) -> None:
    told.txn(1, append("x", 1))
    reader = told.txn(2, read("x", 1, 1))
    assert only(told, "duplicate-elements").operations == (reader,)


def test_unexpected(told: Transactions) -> None:
    reader = told.txn(2, read("x", 1))
    assert only(told, "unexpected").operations == (reader,)


def test_internal(told: Transactions) -> None:
    told.txn(1, append("x", 1))
    told.txn(1, append("x", 2))
    grown = told.txn(2, read("x", 1), read("x", 1, 2))
    finding = only(told, "internal", "G-single")
    assert (finding.operations, finding.allowed) == ((grown,), True)
    assert not only(told, "internal", "G-single", is_serializable=True).allowed


def test_reads_of_one_transaction_that_no_order_explains_are_not_allowed(told: Transactions) -> None:
    told.txn(1, append("x", 1))
    told.start(2, append("x", 2))
    told.txn(3, read("x", 1), read("x", 2))
    assert not found(check_list_append(told.history()))["internal"].allowed


def test_future_read(told: Transactions) -> None:
    own = told.txn(1, read("x", 1), append("x", 1))
    assert only(told, "future-read").operations == (own,)


def test_precommitted_read_is_what_a_database_promises_and_kafka_forbids(told: Transactions) -> None:
    own = told.txn(1, append("x", 1), read("x", 1))
    assert only(told, "precommitted-read").operations == (own,)
    told.header = SERIALIZABLE
    assert not check_list_append(told.history()).counts


def test_lost_update(told: Transactions) -> None:
    told.start(1, read("x"), append("x", 1))
    second = told.txn(2, read("x"), append("x", 2))
    first = told.finish(1, read("x"), append("x", 1))
    told.txn(3, read("x", 1, 2))
    finding = found(check_list_append(told.history()))["lost-update"]
    assert ({*finding.operations}, finding.allowed) == ({first, second}, True)
    told.header = SERIALIZABLE
    assert not found(check_list_append(told.history()))["lost-update"].allowed


def test_lost_write(told: Transactions) -> None:
    lost = told.txn(1, append("x", 1))
    half = told.txn(2, append("x", 2), append("y", 3), type_="info")
    told.txn(3, append("x", 4), type_="info")
    final = told.txn(9, read("x"), final=True)
    assert only(told, "lost-write").operations == (lost, final)
    told.txn(9, read("y", 3), final=True)
    checked = check_list_append(told.history())
    assert [finding.operations for finding in checked.findings] == [(lost, final), (half, final)], "4 may be aborted"


def test_g0_is_allowed_but_of_single_appends(told: Transactions) -> None:
    told.start(1, append("x", 1), append("y", 1))
    told.txn(2, append("x", 2), append("y", 2))
    told.finish(1, append("x", 1), append("y", 1))
    told.txn(3, read("x", 1, 2), read("y", 2, 1))
    assert only(told, "G0").allowed
    assert not only(told, "G0", is_serializable=True).allowed
    single = Transactions()
    single.txn(1, append("x", 1))
    single.txn(2, append("x", 2))
    single.txn(3, read("x", 2, 1))
    assert not only(single, "G0-realtime").allowed


def test_g1c_process_and_realtime(told: Transactions) -> None:
    told.start(1, append("x", 1), read("y", 1))
    second = told.txn(2, append("y", 1), read("x", 1))
    first = told.finish(1, append("x", 1), read("y", 1))
    finding = only(told, "G1c")
    assert ({*finding.operations}, finding.allowed) == ({first, second}, False)
    before = Transactions()
    before.txn(1, read("x", 1))
    before.txn(2, append("x", 1))
    assert not only(before, "G1c-realtime").allowed
    before = Transactions()
    before.txn(1, read("x", 1))
    before.txn(1, append("x", 1))
    assert not only(before, "G1c-process").allowed


def test_g_single_and_g2_item_and_a_stale_read(told: Transactions) -> None:
    told.start(1, read("x", 1), read("y"))
    told.txn(2, append("x", 1), append("y", 1))
    told.finish(1, read("x", 1), read("y"))
    told.txn(3, read("y", 1))
    assert only(told, "G-single").allowed
    assert not only(told, "G-single", is_serializable=True).allowed
    skew = Transactions()
    skew.start(1, read("x"), append("y", 1))
    skew.txn(2, read("y"), append("x", 1))
    skew.finish(1, read("x"), append("y", 1))
    skew.txn(3, read("x", 1), read("y", 1))
    assert not only(skew, "G2-item", is_serializable=True).allowed
    stale = Transactions()
    stale.txn(1, append("x", 1))
    stale.txn(2, read("x"))
    stale.txn(3, read("x", 1))
    assert not check_list_append(stale.history()).counts, "the last stable offset may be held back"
    assert not only(stale, "G-single-realtime", is_serializable=True).allowed


def test_g_nonadjacent_two_reads_see_two_writes_in_different_orders(told: Transactions) -> None:
    told.start(1, append("x", 1))
    told.start(2, append("y", 1))
    told.start(3, read("x", 1), read("y"))
    told.start(4, read("y", 1), read("x"))
    first = told.finish(1, append("x", 1))
    second = told.finish(2, append("y", 1))
    third = told.finish(3, read("x", 1), read("y"))
    fourth = told.finish(4, read("y", 1), read("x"))
    assert only(told, "G-nonadjacent").allowed, "no read is a snapshot"
    finding = only(told, "G-nonadjacent", is_serializable=True)
    assert not finding.allowed
    assert {*finding.operations} == {first, second, third, fourth}


def serial_history(random: Random, steps: int, *, is_kafka: bool) -> History:
    """Of a database that carries out each transaction at one moment, or of one that carries it out step by step as
    Kafka does: appends are stable at once with the commit, reads are prefixes."""
    told = Transactions()
    committed: dict[str, list[int]] = {key: [] for key in "xyz"}
    running: dict[int, list[list[Any]]] = {}
    ids = dict.fromkeys(range(5), 0)
    value = 0
    fates: tuple[EventType, ...] = ("ok", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "fail", "info")
    for _ in range(steps):
        client = random.randrange(5)
        process = client + 5 * ids[client]
        if client not in running:
            micro: list[list[Any]] = []
            for _ in range(random.randint(1, 4)):
                value += 1
                key = random.choice("xyz")
                micro.append(append(key, value) if random.random() < 0.5 else read(key))
            micro.sort(key=lambda one: one[0] == "append" and is_kafka)
            running[client] = micro
            told.start(process, *micro)
            continue
        done = []
        fate = random.choice(fates)
        takes_place = fate == "ok" or (fate == "info" and random.random() < 0.5)
        view = {key: list(values) for key, values in committed.items()}
        for f, key, one in running.pop(client):
            if f == "append":
                view[key].append(one)
                done.append(append(key, one))
            else:
                shown = len(view[key]) - (random.randrange(3) if is_kafka and random.random() < 0.2 else 0)
                done.append(["r", key, view[key][: max(0, shown)]])
        if takes_place:
            committed = view
        told.end(process, done if fate == "ok" else None, fate)
        ids[client] += fate == "info"
    for key, values in committed.items():
        told.txn(999, read(key, *values), final=True)
    if not is_kafka:
        told.header = SERIALIZABLE
    return told.history()


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(20, 200))
def test_what_a_serial_database_did_is_clean(random: Random, steps: int) -> None:
    checked = check_list_append(serial_history(random, steps, is_kafka=False))
    assert not checked.findings


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(20, 200))
def test_what_a_log_with_stale_reads_did_is_allowed(random: Random, steps: int) -> None:
    checked = check_list_append(serial_history(random, steps, is_kafka=True))
    assert not found(checked, allowed=False)
