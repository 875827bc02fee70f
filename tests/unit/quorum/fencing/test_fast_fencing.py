"""Who is fenced before the end of its session, and who never is. Every way out of every state is walked."""

from uuid import UUID

import pytest

from penstock.protocol.ids import BrokerEpoch, NodeId
from penstock.protocol.structs import replace
from penstock.quorum.fencing.fast_fencing import (
    DIAL_TIMES_MS,
    QUORUM_WAIT_MS,
    Attempt,
    Bar,
    Dial,
    Effect,
    FastFencing,
    Fence,
)
from penstock.quorum.metadata.image import BrokerRegistration, MetadataImage
from penstock.quorum.metadata.records import Endpoint

SESSION_MS = 9_000


class Brokers:
    """Brokers 1 to N; this controller's node is 1."""

    def __init__(self, count: int = 5) -> None:
        self.rules = FastFencing(node_id=NodeId(1), listener_name="INTERNAL", session_timeout_ms=SESSION_MS)
        self.now_ms = 1_000_000
        self.has_quorum = True
        self.image = MetadataImage(
            brokers={
                broker_id: BrokerRegistration(
                    id=NodeId(broker_id),
                    epoch=BrokerEpoch(100 + broker_id),
                    incarnation_id=UUID(int=broker_id),
                    is_fenced=False,
                    endpoints=(
                        Endpoint(name="PUBLIC", host="public", port=1),
                        Endpoint(name="INTERNAL", host=f"host-{broker_id}", port=9_000 + broker_id),
                    ),
                )
                for broker_id in range(1, count + 1)
            }
        )

    def change(self, broker_id: int, **changed: object) -> None:
        broker = replace(self.image.brokers[broker_id], **changed)  # type: ignore[arg-type]
        self.image = replace(self.image, brokers={**self.image.brokers, broker_id: broker})

    def active(self, former_leader_id: NodeId | None = None) -> tuple[Effect, ...]:
        return self.rules.on_active(self.image, self.now_ms, former_leader_id=former_leader_id)

    def closed(self, broker_id: int) -> tuple[Effect, ...]:
        return self.rules.on_closed(NodeId(broker_id), self.image, self.now_ms)

    def heard(
        self, broker_id: int, broker_epoch: int | None = None, *, heard_ms: int | None = None
    ) -> tuple[Effect, ...]:
        epoch = self.image.brokers[broker_id].epoch if broker_epoch is None else broker_epoch
        came_ms = self.now_ms if heard_ms is None else heard_ms
        return self.rules.on_heard(NodeId(broker_id), BrokerEpoch(epoch), self.image, self.now_ms, heard_ms=came_ms)

    def dialed(self, attempt: Attempt, *, is_refused: bool = True) -> tuple[Effect, ...]:
        return self.rules.on_dialed(attempt, self.image, self.now_ms, is_refused=is_refused, has_quorum=self.has_quorum)

    def accepted_and_closed(self, attempt: Attempt) -> tuple[Effect, ...]:
        return self.rules.on_accepted_and_closed(attempt, self.image, self.now_ms)

    def attempt(self, broker_id: int) -> Attempt:
        """Begin one."""
        (dial,) = self.closed(broker_id)
        assert isinstance(dial, Dial)
        return dial.attempt

    def refuse_all(self, attempt: Attempt) -> tuple[Effect, ...]:
        """Let every dial be refused, and return what the last one means."""
        for _ in DIAL_TIMES_MS[1:]:
            (dial,) = self.dialed(attempt)
            assert isinstance(dial, Dial)
            self.now_ms = dial.at_ms
        return self.dialed(attempt)

    def fence(self, broker_id: int) -> None:
        """Fence by the shortcut, which must be possible."""
        epoch = self.image.brokers[broker_id].epoch
        fence = self.ask_to_fence(broker_id)
        assert fence == Fence(broker_id=NodeId(broker_id), broker_epoch=epoch)
        self.rules.on_fenced(fence, self.now_ms)
        self.change(broker_id, is_fenced=True)

    def ask_to_fence(self, broker_id: int) -> Fence:
        """The same, as far as the decision, which is not made yet."""
        (fence,) = self.refuse_all(self.attempt(broker_id))
        assert isinstance(fence, Fence)
        return fence


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def dialed_ids(effects: tuple[Effect, ...]) -> list[int]:
    return [effect.attempt.broker_id for effect in effects if isinstance(effect, Dial)]


def test_three_refusals_of_the_inter_broker_endpoint_fence(brokers: Brokers) -> None:
    start_ms = brokers.now_ms
    (first,) = brokers.closed(2)
    assert isinstance(first, Dial)
    attempt = first.attempt
    assert (attempt.broker_id, attempt.host, attempt.ports, first.at_ms) == (2, "host-2", (9_002,), start_ms)
    assert brokers.dialed(attempt) == (Dial(attempt=attempt, at_ms=start_ms + 10),)
    assert brokers.dialed(attempt) == (Dial(attempt=attempt, at_ms=start_ms + 30),)
    assert brokers.dialed(attempt) == (Fence(broker_id=NodeId(2), broker_epoch=BrokerEpoch(102)),)
    assert brokers.dialed(attempt) == ()


def test_a_broker_is_dialed_at_all_its_ports_of_the_host_where_brokers_reach_it(brokers: Brokers) -> None:
    """A proxy in front of one of them refuses for a process that lives; another host says nothing of this one."""
    brokers.change(
        2,
        endpoints=(
            Endpoint(name="PUBLIC", host="balancer", port=1),
            Endpoint(name="SECOND", host="host-2", port=9_900),
            Endpoint(name="INTERNAL", host="host-2", port=9_002),
            Endpoint(name="SAME", host="host-2", port=9_002),
        ),
    )
    assert brokers.attempt(2).ports == (9_002, 9_900)


def test_a_broker_without_the_inter_broker_listener_is_dialed_at_its_first(brokers: Brokers) -> None:
    brokers.change(2, endpoints=(Endpoint(name="PUBLIC", host="public", port=1),))
    attempt = brokers.attempt(2)
    assert (attempt.host, attempt.ports) == ("public", (1,))
    brokers.change(3, endpoints=())
    assert brokers.closed(3) == ()


@pytest.mark.parametrize("refusals", [0, 1, 2])
def test_anything_but_a_refusal_ends_the_attempt(brokers: Brokers, refusals: int) -> None:
    attempt = brokers.attempt(2)
    for _ in range(refusals):
        brokers.dialed(attempt)
    assert brokers.dialed(attempt, is_refused=False) == ()
    assert not brokers.rules.is_dialing(attempt)
    assert brokers.dialed(attempt) == ()


def test_a_process_that_accepts_while_it_ends_is_looked_for_anew_three_times_and_later_each_time(
    brokers: Brokers,
) -> None:
    attempt = brokers.attempt(2)
    for wait_ms in (0, 50, 250):
        assert brokers.dialed(attempt, is_refused=False) == ()
        (dial,) = brokers.accepted_and_closed(attempt)
        assert isinstance(dial, Dial)
        assert dial.at_ms == brokers.now_ms + wait_ms
        attempt = dial.attempt
    assert brokers.dialed(attempt, is_refused=False) == ()
    assert brokers.accepted_and_closed(attempt) == ()
    attempt = brokers.attempt(2)
    brokers.dialed(attempt, is_refused=False)
    (dial,) = brokers.accepted_and_closed(attempt)
    assert isinstance(dial, Dial)
    assert brokers.refuse_all(dial.attempt) == (Fence(broker_id=NodeId(2), broker_epoch=BrokerEpoch(102)),)


@pytest.mark.parametrize("epoch", [102, 777], ids=["heartbeat", "registration"])
def test_a_broker_that_is_heard_is_dialed_no_more(brokers: Brokers, epoch: int) -> None:
    attempt = brokers.attempt(2)
    assert brokers.heard(2, epoch) == ()
    assert not brokers.rules.is_dialing(attempt)
    assert brokers.dialed(attempt) == ()
    assert brokers.heard(3) == ()


def test_leadership_that_ends_ends_every_attempt(brokers: Brokers) -> None:
    attempt = brokers.attempt(2)
    brokers.rules.on_inactive()
    assert brokers.dialed(attempt) == ()


def test_one_attempt_at_a_time_is_made_for_a_broker(brokers: Brokers) -> None:
    brokers.attempt(2)
    assert brokers.closed(2) == ()


def test_who_may_not_be_fenced_is_not_dialed(brokers: Brokers) -> None:
    assert brokers.closed(1) == (), "this controller's own node"
    assert brokers.closed(9) == (), "no such broker"
    brokers.change(2, is_fenced=True)
    assert brokers.closed(2) == (), "fenced"
    brokers.change(3, in_controlled_shutdown=True)
    assert brokers.closed(3) == (), "shutting down"


def test_what_changed_while_it_was_dialed_counts(brokers: Brokers) -> None:
    attempts = {broker_id: brokers.attempt(broker_id) for broker_id in (2, 3, 4, 5)}
    brokers.change(2, in_controlled_shutdown=True)
    assert brokers.refuse_all(attempts[2]) == ()
    brokers.change(3, epoch=999)
    assert brokers.refuse_all(attempts[3]) == ()
    brokers.image = replace(brokers.image, brokers={1: brokers.image.brokers[1], 5: brokers.image.brokers[5]})
    assert brokers.refuse_all(attempts[4]) == ()


def test_no_broker_is_fenced_without_a_quorum_and_it_is_dialed_until_there_is_one(brokers: Brokers) -> None:
    brokers.has_quorum = False
    attempt = brokers.attempt(2)
    (dial,) = brokers.refuse_all(attempt)
    assert dial == Dial(attempt=attempt, at_ms=brokers.now_ms + QUORUM_WAIT_MS)
    brokers.now_ms = dial.at_ms
    brokers.has_quorum = True
    assert brokers.dialed(attempt) == (Fence(broker_id=NodeId(2), broker_epoch=BrokerEpoch(102)),)


@pytest.mark.parametrize("end", ["accepted", "heard", "not active", "shutting down"])
def test_a_broker_that_is_dialed_until_there_is_a_quorum_is_left_as_at_any_time(brokers: Brokers, end: str) -> None:
    brokers.has_quorum = False
    attempt = brokers.attempt(2)
    brokers.refuse_all(attempt)
    brokers.has_quorum = True
    match end:
        case "heard":
            brokers.heard(2)
        case "not active":
            brokers.rules.on_inactive()
        case "shutting down":
            brokers.change(2, in_controlled_shutdown=True)
    assert brokers.dialed(attempt, is_refused=end != "accepted") == ()
    assert not brokers.rules.is_dialing(attempt)


def test_a_session_ends_the_attempt_of_a_controller_that_has_no_quorum(brokers: Brokers) -> None:
    brokers.has_quorum = False
    attempt = brokers.attempt(2)
    start_ms = brokers.now_ms
    effects = brokers.refuse_all(attempt)
    while effects:
        (dial,) = effects
        assert isinstance(dial, Dial)
        brokers.now_ms = dial.at_ms
        effects = brokers.dialed(attempt)
    assert brokers.now_ms - start_ms >= SESSION_MS > brokers.now_ms - start_ms - QUORUM_WAIT_MS
    assert not brokers.rules.is_dialing(attempt)
    assert dialed_ids(brokers.closed(2)) == [2]


@pytest.mark.parametrize(("count", "limit"), [(2, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_less_than_half_of_the_brokers_are_fenced_within_a_session(count: int, limit: int) -> None:
    brokers = Brokers(count)
    for broker_id in range(2, 2 + limit):
        brokers.fence(broker_id)
    assert brokers.closed(count) == ()
    brokers.now_ms += SESSION_MS
    assert dialed_ids(brokers.closed(count)) == ([count] if count - limit > 2 else [])


def test_attempts_that_run_side_by_side_share_the_limit() -> None:
    brokers = Brokers(3)
    attempts = [brokers.attempt(2), brokers.attempt(3)]
    for attempt in attempts * 2:
        brokers.dialed(attempt)
    assert brokers.dialed(attempts[0]) == (Fence(broker_id=NodeId(2), broker_epoch=BrokerEpoch(102)),)
    assert brokers.dialed(attempts[1]) == ()


def test_a_broker_that_has_registered_anew_takes_no_room() -> None:
    """That its last process was gone was right: brokers that crash one after the other are all noticed at once."""
    brokers = Brokers(3)
    for broker_id in (2, 3, 2):
        brokers.fence(broker_id)
        assert brokers.closed(5 - broker_id) == ()
        brokers.heard(broker_id, 500)
        brokers.change(broker_id, epoch=500, is_fenced=False)


def test_a_broker_that_was_alive_is_left_to_its_sessions_for_ten_of_them(brokers: Brokers) -> None:
    brokers.fence(2)
    until_ms = brokers.now_ms + 10 * SESSION_MS
    assert brokers.heard(2) == (Bar(broker_id=NodeId(2), until_ms=until_ms, wrong_count=1),)
    brokers.change(2, is_fenced=False)
    assert brokers.heard(2) == ()
    brokers.now_ms = until_ms - 1
    assert brokers.closed(2) == ()
    brokers.now_ms = until_ms
    brokers.fence(2)
    (bar,) = brokers.heard(2)
    assert isinstance(bar, Bar)
    assert bar.wrong_count == 2


@pytest.mark.parametrize("epoch", [102, 777], ids=["heartbeat", "registration"])
def test_a_broker_that_is_heard_before_the_decision_is_neither_fenced_nor_barred(brokers: Brokers, epoch: int) -> None:
    fence = brokers.ask_to_fence(2)
    assert brokers.rules.is_fencing(fence)
    assert brokers.heard(2, epoch) == ()
    assert not brokers.rules.is_fencing(fence)
    brokers.rules.on_not_fenced(fence)
    assert brokers.heard(2, epoch) == ()
    assert brokers.rules.is_fencing(brokers.ask_to_fence(2))


def test_a_heartbeat_that_came_before_the_connection_closed_and_waited_since_is_no_sign_of_life(
    brokers: Brokers,
) -> None:
    came_ms = brokers.now_ms
    brokers.now_ms += 1
    attempt = brokers.attempt(2)
    assert brokers.heard(2, heard_ms=came_ms) == ()
    assert brokers.rules.is_dialing(attempt)
    (fence,) = brokers.refuse_all(attempt)
    assert isinstance(fence, Fence)
    assert brokers.heard(2, heard_ms=came_ms) == ()
    assert brokers.rules.is_fencing(fence)
    brokers.rules.on_fenced(fence, brokers.now_ms)
    assert brokers.heard(2, heard_ms=came_ms) == ()
    assert brokers.rules.wrong_count == 0


def test_leadership_that_ends_before_the_decision_fences_no_broker(brokers: Brokers) -> None:
    fence = brokers.ask_to_fence(2)
    brokers.rules.on_inactive()
    assert not brokers.rules.is_fencing(fence)


def test_a_broker_that_is_heard_between_the_decision_and_its_commit_is_barred_when_it_is_heard_again(
    brokers: Brokers,
) -> None:
    fence = brokers.ask_to_fence(2)
    assert brokers.heard(2) == ()
    brokers.rules.on_fenced(fence, brokers.now_ms)
    (bar,) = brokers.heard(2)
    assert isinstance(bar, Bar)


def test_a_broker_that_is_about_to_be_fenced_is_not_dialed(brokers: Brokers) -> None:
    fence = brokers.ask_to_fence(2)
    assert brokers.closed(2) == ()
    brokers.rules.on_not_fenced(fence)
    assert dialed_ids(brokers.closed(2)) == [2]


def test_what_could_not_be_decided_takes_no_room() -> None:
    brokers = Brokers(3)
    fence = brokers.ask_to_fence(2)
    assert brokers.closed(3) == ()
    brokers.rules.on_not_fenced(fence)
    brokers.fence(3)


def test_a_broker_that_registers_anew_was_gone(brokers: Brokers) -> None:
    brokers.fence(2)
    brokers.change(2, epoch=500, is_fenced=False)
    assert brokers.heard(2) == ()
    brokers.now_ms += SESSION_MS
    brokers.fence(2)


def test_a_new_controller_looks_for_the_former_leader_first(brokers: Brokers) -> None:
    (first,) = brokers.active(former_leader_id=NodeId(3))
    assert isinstance(first, Dial)
    assert first.attempt.broker_id == 3
    fence, *others = brokers.refuse_all(first.attempt)
    assert fence == Fence(broker_id=NodeId(3), broker_epoch=BrokerEpoch(103))
    assert dialed_ids(tuple(others)) == [2, 4, 5]


def test_a_new_controller_looks_for_the_others_when_the_former_leader_is_alive(brokers: Brokers) -> None:
    (first,) = brokers.active(former_leader_id=NodeId(3))
    assert isinstance(first, Dial)
    assert dialed_ids(brokers.heard(3)) == [2, 4, 5]
    (first,) = brokers.active(former_leader_id=NodeId(3))
    assert isinstance(first, Dial)
    assert dialed_ids(brokers.dialed(first.attempt, is_refused=False)) == [2, 4, 5]


@pytest.mark.parametrize("former_leader_id", [None, 9], ids=["unknown", "no broker"])
def test_a_new_controller_looks_for_everyone(brokers: Brokers, former_leader_id: NodeId | None) -> None:
    brokers.change(4, is_fenced=True)
    assert dialed_ids(brokers.active(former_leader_id)) == [2, 3, 5]
