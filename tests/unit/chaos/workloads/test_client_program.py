"""How a client is directed, and what it writes into its history."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from scripted_session import ScriptedSession, records

from penstock.chaos.histories.client_history import ClientHistory, merged
from penstock.chaos.workloads.client_program import Client, Instructions, ProgramOptions
from penstock.chaos.workloads.outcomes import NotDoneError, UnknownOutcomeError
from penstock.chaos.workloads.queue_client import QueueClient
from penstock.chaos.workloads.session import SessionOptions
from penstock.client import clock

FAR_NS = 1 << 62


class ScriptedClient(QueueClient):
    """Its session is the one that is given to it."""

    def use(self, session: ScriptedSession) -> None:
        self._life = session


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Where a client is told something, and where it is said."""
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        try:
            os.close(descriptor)
        except OSError:
            continue


@pytest.fixture
def make(tmp_path: Path, pipe: tuple[int, int]) -> Iterator[Callable[[Mapping[str, object]], ScriptedClient]]:
    options = ProgramOptions(
        bootstrap="", topic="t", partitions=2, history=tmp_path / "c.jsonl", process=3, stride=10, start_ns=0, seed=1,
        client="confluent", until=0, pause_ms=0,
    )  # fmt: skip
    with ClientHistory(options.history, process=3, stride=10, start_ns=0) as history:

        def new(answers: Mapping[str, object]) -> ScriptedClient:
            client = ScriptedClient(
                options, history, Instructions(pipe[0], until_ns=FAR_NS), subscribes=True, is_transactional=True
            )
            client.use(ScriptedSession(answers, {"t-0": records((7, "3"), (8, "5"))}))
            return client

        yield new


def test_a_client_stops_then_drains_as_it_is_told(pipe: tuple[int, int]) -> None:
    told = Instructions(pipe[0], until_ns=FAR_NS)
    assert told.word() is None
    os.write(pipe[1], b"sto")
    assert told.word() is None, "half a line says nothing"
    os.write(pipe[1], b"p\n")
    assert told.word() == "stop"
    os.write(pipe[1], b"drain\n")
    assert told.wait_drain()


def test_a_client_whose_starter_is_gone_ends_without_final_reads(pipe: tuple[int, int]) -> None:
    told = Instructions(pipe[0], until_ns=FAR_NS)
    os.close(pipe[1])
    assert told.word() == "abandon"
    assert not told.wait_drain()


def test_a_client_drains_by_itself_when_its_time_is_over(pipe: tuple[int, int]) -> None:
    assert Instructions(pipe[0], until_ns=clock.monotonic_ns()).word() == "drain"


def lines(client: Client) -> list[tuple[str, int | str, str, object]]:
    return [(one.type, one.process, one.f, one.value) for one in merged([client.options.history])]


def transact(client: ScriptedClient) -> None:
    client.perform("txn", [["send", "t-0", 3], ["poll"]], lambda: client._transact([["send", "t-0", 3], ["poll"]]))


def without_abort(client: ScriptedClient) -> None:
    """The random generator says that no transaction is given up."""
    client.random.random = lambda: 0.99  # type: ignore[method-assign]


def test_a_committed_transaction_has_its_offsets_and_what_it_polled(
    make: Callable[[Mapping[str, object]], ScriptedClient],
) -> None:
    client = make({})
    without_abort(client)
    transact(client)
    value = [["send", "t-0", [0, 3]], ["poll", {"t-0": [[7, 3], [8, 5]]}]]
    assert lines(client)[1] == ("ok", 3, "txn", value)


def test_a_commit_without_an_answer_is_unknown_and_its_process_never_appears_again(
    make: Callable[[Mapping[str, object]], ScriptedClient],
) -> None:
    client = make({"commit": UnknownOutcomeError("timed out")})
    without_abort(client)
    transact(client)
    assert lines(client)[1][:3] == ("info", 3, "txn")
    assert not client.has_session
    assert client.history.process == 13


@pytest.mark.parametrize("failing", ["send", "poll", "send_offsets"])
def test_a_transaction_whose_commit_was_not_asked_for_failed_and_is_polled_again(
    failing: str, make: Callable[[Mapping[str, object]], ScriptedClient]
) -> None:
    error = UnknownOutcomeError("timed out") if failing == "send" else NotDoneError("no")
    client = make({failing: error})
    without_abort(client)
    session = client.session
    assert isinstance(session, ScriptedSession)
    transact(client)
    assert lines(client)[1] == ("fail", 3, "txn", [["send", "t-0", 3], ["poll"]])
    assert "commit" not in session.calls
    assert session.calls[-2:] == ["abort", "seek {'t-0': 7}" if failing == "send_offsets" else "seek {}"]


def test_a_send_without_an_answer_tells_the_offsets_that_are_known(
    make: Callable[[Mapping[str, object]], ScriptedClient],
) -> None:
    client = make({"send": UnknownOutcomeError("timed out", [4, None])})
    sends = [["send", "t-0", 3], ["send", "t-1", 13]]
    client.perform("send", sends, lambda: client._send(sends))
    assert lines(client)[1] == ("info", 3, "send", [["send", "t-0", [4, 3]], ["send", "t-1", 13]])


def test_a_failed_operation_of_a_broken_session_ends_the_session_too(
    make: Callable[[Mapping[str, object]], ScriptedClient],
) -> None:
    client = make({"begin": NotDoneError("fenced", is_broken=True)})
    transact(client)
    assert lines(client)[1][:3] == ("fail", 3, "txn")
    assert not client.has_session


def test_values_are_those_of_one_client_among_so_many_and_grow(
    make: Callable[[Mapping[str, object]], ScriptedClient],
) -> None:
    client = make({})
    assert [client.draw_value() for _ in range(3)] == [13, 23, 33]


def test_session_options_say_who_commits(make: Callable[[Mapping[str, object]], ScriptedClient]) -> None:
    options = make({}).session_options()
    assert isinstance(options, SessionOptions)
    assert options.transactional_id == "t-3"
    assert not options.has_auto_commit, "the transactions commit what was polled"
