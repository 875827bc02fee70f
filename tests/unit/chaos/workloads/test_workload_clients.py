"""What the clients of each workload write down, with sessions that a test has scripted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from scripted_session import ScriptedSession, records

from penstock.chaos.histories.client_history import ClientHistory, merged
from penstock.chaos.workloads import exactly_once_client
from penstock.chaos.workloads.admin_session import AdminSession
from penstock.chaos.workloads.aiokafka_session import AiokafkaSession
from penstock.chaos.workloads.client_program import Client, Instructions, ProgramOptions
from penstock.chaos.workloads.counter_client import CounterClient
from penstock.chaos.workloads.exactly_once_client import Copier
from penstock.chaos.workloads.list_append_client import ListAppendClient
from penstock.chaos.workloads.outcomes import NotDoneError, UnknownOutcomeError
from penstock.chaos.workloads.register_client import RegisterClient
from penstock.chaos.workloads.session import Received, Send
from penstock.protocol.errors import ErrorCode

C = TypeVar("C", bound=Client)
Make = Callable[[type[C], ScriptedSession], C]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[type[Client], ScriptedSession], Client]]:
    """A client of that kind whose session is there."""
    options = ProgramOptions(
        bootstrap="", topic="t", partitions=2, history=tmp_path / "c.jsonl", process=1, stride=4, start_ns=0, seed=1,
        client="confluent", until=0, pause_ms=0,
    )  # fmt: skip
    read, write = os.pipe()
    with ClientHistory(options.history, process=1, stride=4, start_ns=0) as history:

        def new(kind: type[Client], session: ScriptedSession) -> Client:
            client = kind(options, history, Instructions(read, until_ns=1 << 62))
            client._life = session
            client.random.random = lambda: 0.99  # type: ignore[method-assign]
            return client

        yield new
    os.close(read)
    os.close(write)


def completions(client: Client) -> list[tuple[str, Any]]:
    return [(one.type, one.value) for one in merged([client.options.history]) if one.type != "invoke"]


def test_a_register_is_the_last_record_of_its_key(make: Make[RegisterClient]) -> None:
    session = ScriptedSession(
        {}, {"t-1": [Received(0, b"5", b"r1"), Received(1, b"9", b"r3"), Received(2, b"7", b"r1")]}
    )
    session.ends = {"t-1": 3}
    client = make(RegisterClient, session)
    client.began()
    client._read("r1")
    client._read("r5")
    assert completions(client) == [("ok", {"k": "r1", "v": 7}), ("ok", {"k": "r5", "v": None})]


def test_a_counter_is_the_sum_of_its_records(make: Make[CounterClient]) -> None:
    session = ScriptedSession({}, {"t-0": records((0, "40"), (1, "2"))})
    session.ends = {"t-0": 2}
    client = make(CounterClient, session)
    client.began()
    client._read("t-0")
    assert completions(client) == [("ok", {"k": "t-0", "n": 42})]


def test_a_client_adds_to_its_own_counter_only(make: Make[CounterClient]) -> None:
    client = make(CounterClient, ScriptedSession({}))
    assert {client.draw_write()[1]["k"] for _ in range(20)} == {"t-1"}


def test_a_session_that_cannot_be_assigned_is_followed_by_another(make: Make[CounterClient]) -> None:
    client = make(CounterClient, ScriptedSession({}))
    client.close()
    sessions = [ScriptedSession({"assign": NotDoneError("no node answers")}), ScriptedSession({})]
    unused = list(sessions)
    client.new_life = lambda _options: unused.pop(0)  # type: ignore[method-assign, assignment]
    assert client.enter(is_wanted=lambda: True)
    assert client.session is sessions[1]
    assert sessions[0].calls[-1] == "close"


def test_a_send_that_times_out_as_a_whole_has_no_known_offset() -> None:
    class Silent(AiokafkaSession):
        def __init__(self) -> None:
            """Connects to nothing."""

        def _run(self, call: Any) -> Any:
            call.close()
            raise TimeoutError

    with pytest.raises(UnknownOutcomeError) as unknown:
        Silent().send([Send("t-0", b"1"), Send("t-1", b"2")])
    assert unknown.value.value == [None, None]


def test_a_list_is_read_to_its_last_stable_offset(make: Make[ListAppendClient]) -> None:
    session = ScriptedSession({}, {"t-0": records((0, "4"))}, {"t-0": records((2, "8"))})
    session.ends = {"t-0": 3}
    client = make(ListAppendClient, session)
    asked: list[list[Any]] = [["r", "t-0", None], ["append", "t-0", 12]]
    client.perform("txn", asked, lambda: client._transact(asked))
    assert completions(client) == [("ok", [["r", "t-0", [4, 8]], ["append", "t-0", 12]])]
    assert session.calls[-3:] == ["begin", "send", "commit"]


def test_a_list_is_read_no_further_than_it_was_stable_when_the_read_began(make: Make[ListAppendClient]) -> None:
    session = ScriptedSession({}, {"t-0": records((0, "4"), (2, "8"))})
    session.ends = {"t-0": 2}
    assert make(ListAppendClient, session)._read("t-0") == [4]


def test_a_transaction_without_appends_is_none(make: Make[ListAppendClient]) -> None:
    session = ScriptedSession({})
    client = make(ListAppendClient, session)
    assert client._transact([["r", "t-0", None]]) == [["r", "t-0", []]]
    assert session.calls == []


def test_an_append_that_is_not_known_to_be_stored_is_aborted(make: Make[ListAppendClient]) -> None:
    session = ScriptedSession({"send": UnknownOutcomeError("timed out")})
    client = make(ListAppendClient, session)
    asked = [["append", "t-0", 12]]
    client.perform("txn", asked, lambda: client._transact(asked))
    assert completions(client) == [("fail", asked)]
    assert session.calls == ["begin", "send", "abort"]


def test_a_copier_commits_its_output_with_the_offsets_of_its_input(make: Make[Copier]) -> None:
    session = ScriptedSession({}, {"t-0": records((3, "12"), (5, "16"))})
    make(Copier, session).step()
    assert session.calls[1:] == ["begin", "send", "send_offsets {'t-0': 6}", "commit"]


def test_a_copier_that_gives_up_reads_its_input_again(make: Make[Copier]) -> None:
    session = ScriptedSession({"send_offsets": NotDoneError("rebalanced")}, {"t-0": records((3, "12"))})
    make(Copier, session).step()
    assert session.calls[-2:] == ["abort", "seek {'t-0': 3}"]


@pytest.mark.parametrize(("committed", "is_done"), [(9, True), (8, False), (None, False)])
def test_copiers_are_done_when_their_group_has_committed_all_of_the_input(
    committed: int | None, make: Make[Copier], monkeypatch: pytest.MonkeyPatch, *, is_done: bool
) -> None:
    monkeypatch.setattr(exactly_once_client, "_FINISH_S", 0.0)
    monkeypatch.setattr(exactly_once_client, "find_ends", lambda *_, **__: {"t-0": 9})
    told = None if committed is None else {"t-0": committed}
    monkeypatch.setattr(exactly_once_client, "find_committed", lambda *_: told)
    copier = make(Copier, ScriptedSession({}))
    assert copier.final() is is_done
    # It says how far the group came, or that it does not know.
    assert completions(copier) == [("fail", copier.options.keys) if told is None else ("ok", told)]


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_PARTITIONS])
def test_a_refused_change_of_metadata_is_certain(code: ErrorCode) -> None:
    with pytest.raises(NotDoneError, match=f"^{code.name}: "):
        AdminSession._check_change(SimpleNamespace(error_code=code, error_message="no"))


@pytest.mark.parametrize(
    "code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_a_change_of_metadata_that_may_yet_be_made_is_unknown(code: ErrorCode) -> None:
    with pytest.raises(UnknownOutcomeError, match=f"^{code.name}: "):
        AdminSession._check_change(SimpleNamespace(error_code=code, error_message="no"))
