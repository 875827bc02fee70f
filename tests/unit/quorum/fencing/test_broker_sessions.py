from penstock.protocol.ids import NodeId
from penstock.quorum.fencing.broker_sessions import BrokerSessions, MetadataPosition


def test_a_session_lasts_from_the_last_contact() -> None:
    sessions = BrokerSessions(1_000)
    sessions.touch(NodeId(1), 0)
    sessions.touch(NodeId(2), 500)
    assert [sessions.is_live(NodeId(broker), 999) for broker in (1, 2, 3)] == [True, True, False]
    assert sessions.expired(1_000) == [1]
    assert sessions.expired(1_500) == [1, 2]


def test_a_broker_that_was_never_heard_does_not_expire() -> None:
    assert BrokerSessions(1_000).expired(10_000) == []


def test_sessions_begin_anew_when_no_broker_could_be_heard() -> None:
    sessions = BrokerSessions(1_000)
    sessions.touch(NodeId(1), 0)
    sessions.renew(5_000)
    assert sessions.expired(5_999) == []
    assert sessions.expired(6_000) == [1]


def test_the_time_of_being_caught_up_stays_while_a_broker_falls_behind() -> None:
    sessions = BrokerSessions(1_000)
    sessions.note_offset(NodeId(1), 5, is_caught_up=True, wall_ms=100)
    sessions.note_offset(NodeId(1), 5, is_caught_up=False, wall_ms=200)
    sessions.note_offset(NodeId(2), 3, is_caught_up=False, wall_ms=200)
    assert sessions.positions() == {1: MetadataPosition(5, 200, 100), 2: MetadataPosition(3, 200, -1)}
    sessions.clear()
    assert sessions.positions() == {}


def test_a_broker_that_left_has_no_session_until_it_is_heard_again() -> None:
    sessions = BrokerSessions(1_000)
    sessions.touch(NodeId(1), 0)
    sessions.end(NodeId(1))
    sessions.end(NodeId(2))
    assert not sessions.is_live(NodeId(1), 1)
    assert sessions.expired(10_000) == []
    sessions.touch(NodeId(1), 2)
    assert sessions.is_live(NodeId(1), 3)


def test_a_broker_that_is_waited_for_is_not_live_and_expires_unless_it_is_heard() -> None:
    sessions = BrokerSessions(1_000)
    for broker_id in (1, 2, 3):
        sessions.await_contact(NodeId(broker_id), 0)
    assert not sessions.is_live(NodeId(1), 0)
    sessions.touch(NodeId(2), 500)
    sessions.end(NodeId(3))
    assert sessions.expired(999) == []
    assert sessions.expired(1_000) == [1]
    sessions.renew(1_200)
    assert sessions.expired(2_199) == []


def test_the_silence_of_a_broker_begins_with_its_last_contact() -> None:
    sessions = BrokerSessions(1000)
    sessions.touch(NodeId(1), 100)
    sessions.touch(NodeId(2), 150)
    assert sessions.silent_ms(200) == {1: 100, 2: 50}
    sessions.touch(NodeId(1), 200)
    sessions.end(NodeId(2))
    assert sessions.silent_ms(230) == {1: 30}
