import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.histories.client_history import ClientHistory, merged
from penstock.chaos.histories.history_file import open_history, read_history, write_history
from penstock.chaos.histories.operation import NEMESIS, EventType, Header, History, Operation, Pair
from penstock.local.errors import ClusterError

SENDS = [
    Operation(0, "invoke", 1, 10, "send", [["send", "t-0", 5]]),
    Operation(1, "info", NEMESIS, 15, "partition", {"nodes": [1]}),
    Operation(2, "invoke", 2, 16, "poll", [["poll"]], final=True),
    Operation(3, "ok", 1, 20, "send", [["send", "t-0", [7, 5]]]),
    Operation(4, "invoke", 1, 30, "send", [["send", "t-0", 6]]),
    Operation(5, "info", 1, 40, "send", error="no answer in time"),
]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    header = Header(workload="queue", seed=7, transactions=True)
    write_history(tmp_path / "history.jsonl", header, SENDS)
    history = read_history(tmp_path / "history.jsonl")
    assert (history.header, list(history.operations)) == (header, SENDS)


def test_a_history_that_is_not_kept_can_be_gone_through_again(tmp_path: Path) -> None:
    write_history(tmp_path / "history.jsonl", Header(workload="queue"), SENDS)
    operations = open_history(tmp_path / "history.jsonl").operations
    assert [list(operations), list(operations)] == [SENDS, SENDS]
    assert (len(operations), operations[2], operations[-1], operations[1:3]) == (6, SENDS[2], SENDS[-1], SENDS[1:3])


def test_pairs_say_what_became_of_each_invocation(tmp_path: Path) -> None:
    write_history(tmp_path / "history.jsonl", Header(workload="queue"), SENDS)
    pairs = list(read_history(tmp_path / "history.jsonl").pairs())
    assert [(pair.outcome, pair.index) for pair in pairs] == [("ok", 3), ("info", 2), ("info", 5)]
    assert pairs[0].value == [["send", "t-0", [7, 5]]]
    assert pairs[2].value == [["send", "t-0", 6]], "what was asked, where the completion does not say more"


@given(st.lists(st.tuples(st.sampled_from(["invoke", "ok", "fail", "info"]), st.sampled_from([1, 2, 3, NEMESIS]))))
def test_pairs_come_by_their_invocations_each_with_the_next_completion_of_its_process(
    events: list[tuple[EventType, int | str]],
) -> None:
    """Whatever the events are: a process that is asked again before an answer, and answers to nothing."""
    operations = [Operation(2 * n, kind, process, n, "send") for n, (kind, process) in enumerate(events)]
    expected = []
    for n, invocation in enumerate(operations):
        if invocation.type == "invoke" and invocation.process != NEMESIS:
            after = next((one for one in operations[n + 1 :] if one.process == invocation.process), None)
            expected.append(Pair(invocation, None if after is None or after.type == "invoke" else after))
    assert list(History(Header(workload="queue"), operations).pairs()) == expected


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda lines: [*lines[:2], b"{not json", *lines[2:]], "line 3 is no line of a history"),
        (lambda lines: [lines[0], lines[2], lines[1]], "line 3: index 0 does not follow 1"),
        (lambda lines: lines[1:], "line 1 is no line of a history"),
        (lambda lines: [lines[0].replace(b"history/1", b"history/9"), *lines[1:]], "'penstock-history/9'"),
    ],
    ids=["damaged", "out of order", "no header", "another format"],
)
def test_what_is_no_history_is_refused_with_its_line(damage, sentence: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "history.jsonl"
    write_history(path, Header(workload="queue"), SENDS)
    path.write_bytes(b"\n".join(damage(path.read_bytes().splitlines())) + b"\n")
    with pytest.raises(ClusterError, match=sentence):
        read_history(path)


def test_an_index_that_goes_back_is_refused_in_a_last_line_without_an_end_too(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_history(path, Header(workload="queue"), SENDS)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines()[1])
    with pytest.raises(ClusterError, match="line 8: index 0 does not follow 5"):
        read_history(path)


def test_a_compressed_history_is_read_and_a_damaged_one_refused(tmp_path: Path) -> None:
    write_history(tmp_path / "history.jsonl", Header(workload="queue"), SENDS)
    data = gzip.compress((tmp_path / "history.jsonl").read_bytes())
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(data)
    assert list(read_history(path).operations) == SENDS
    for damaged in (data[:-20], b"no gzip", data[:20] + b"\0" * 40 + data[60:]):
        path.write_bytes(damaged)
        with pytest.raises(ClusterError, match=r"history.jsonl.gz (cannot be read: |, line \d+ is no line)"):
            read_history(path)


def test_clients_histories_merge_by_time_and_a_killed_one_has_no_outcome(tmp_path: Path) -> None:
    first = ClientHistory(tmp_path / "a", process=0, stride=2, start_ns=0)
    with first, ClientHistory(tmp_path / "b", process=1, stride=2, start_ns=0) as second:
        first.invoke("send", 1)
        second.invoke("send", 2)
        second.fail("too large")
        second.next_life()
        second.invoke("send", 3)
        first.ok(1)
    with (tmp_path / "b").open("ab") as file:
        file.write(b'{"index":0,"type":"ok","proc')
    events = merged([tmp_path / "a", tmp_path / "b"])
    assert [event.index for event in events] == list(range(5))
    assert [(event.process, event.type, event.value) for event in events] == [
        (0, "invoke", 1), (1, "invoke", 2), (1, "fail", 2), (3, "invoke", 3), (0, "ok", 1),
    ]  # fmt: skip
