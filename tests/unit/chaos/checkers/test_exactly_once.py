from __future__ import annotations

from random import Random
from typing import Any

from histories import numbered, planted
from hypothesis import given
from hypothesis import strategies as st

from penstock.chaos.checkers.exactly_once import check_exactly_once
from penstock.chaos.histories.operation import History, Operation


def sent(value: int, offset: int | None, kind: str = "ok") -> list[Any]:
    done = [["send", "t-0", value if offset is None else [offset, value]]]
    return [(0, "send", "invoke", [["send", "t-0", value]]), (0, "send", kind, None if kind == "fail" else done)]


def polled(*records: tuple[str, int, list[Any]], final: bool = True) -> list[Any]:
    told: dict[str, list[list[Any]]] = {}
    for key, offset, value in records:
        told.setdefault(key, []).append([offset, value])
    more = ("final",) if final else ()
    return [(1, "poll", "invoke", [["poll"]], *more), (1, "poll", "ok", [["poll", told]], *more)]


def found(history: History) -> list[tuple[str, bool, tuple[int, ...]]]:
    return [(one.type, one.allowed, one.operations) for one in check_exactly_once(history).findings]


ONE, TWO = ["t-0", 1], ["t-0", 2]


def test_each_input_has_one_output() -> None:
    both = polled(("t-out-0", 0, ONE), ("t-out-0", 1, TWO))
    checked = check_exactly_once(planted(*sent(1, 0), *sent(2, 1), *both, *both))
    assert not checked.findings, "that records are read twice is no second output"
    assert checked.statistics["inputs-with-one-output"] == 2


def test_an_input_with_two_outputs_is_found() -> None:
    twice = polled(("t-out-0", 0, ONE), ("t-out-1", 5, ONE))
    assert found(planted(*sent(1, 0), *twice)) == [("duplicate-output", False, (1, 3))]


def test_an_input_without_output_is_lost_once_everything_was_read() -> None:
    only_one = [*sent(1, 0), *sent(2, 1)]
    assert found(planted(*only_one, *polled(("t-out-0", 0, ONE)))) == [("lost-output", False, (3,))]
    assert found(planted(*only_one, *polled(("t-out-0", 0, ONE), final=False))) == [("lost-output", True, (3,))]


def copied(first: int, next_: int, kind: str) -> list[Any]:
    done = None if kind == "fail" else {"t-0": [first, next_]}
    return [(2, "copy", "invoke", {"t-0": [first, next_]}), (2, "copy", kind, done)]


def committed(offset: int, kind: str = "ok") -> list[Any]:
    done = {"t-0": offset} if kind == "ok" else None
    return [(3, "committed", "invoke", ["t-0"], "final"), (3, "committed", kind, done, "final")]


def test_an_input_that_no_copier_came_to_is_not_lost() -> None:
    """The second one is not copied: both were acknowledged, and the output has the first."""
    inputs, outputs = [*sent(1, 0), *sent(2, 1)], polled(("t-out-0", 0, ONE))
    history = planted(*inputs, *copied(0, 1, "ok"), *outputs, *committed(1))
    assert found(history) == [("lost-output", True, (3,))]
    (finding,) = check_exactly_once(history).findings
    assert finding.why_allowed == "no copier came to it: the group has committed t-0 up to 1 in the end"
    # It was about to come to it, and did not, or is not known to have.
    for kind in ("fail", "info"):
        tried = planted(*inputs, *copied(0, 1, "ok"), *copied(1, 2, kind), *outputs, *committed(1))
        assert found(tried) == [("lost-output", True, (3,))]


def test_an_input_that_a_copier_came_to_is_lost() -> None:
    inputs, outputs = [*sent(1, 0), *sent(2, 1)], polled(("t-out-0", 0, ONE))
    for told in (
        # The group has committed past it, whatever became of the copy.
        [*copied(1, 2, "info"), *committed(2)],
        # The copy was committed, though the group has forgotten.
        [*copied(0, 2, "ok"), *committed(0)],
        # A copier began behind it.
        [*copied(2, 3, "fail"), *committed(1)],
    ):
        assert found(planted(*inputs, *outputs, *told)) == [("lost-output", False, (3,))]


def test_without_what_the_group_has_committed_every_input_has_to_have_an_output() -> None:
    """It may have come further than its copies tell: one of unknown outcome is committed, perhaps, with its offsets."""
    inputs, outputs = [*sent(1, 0), *sent(2, 1)], polled(("t-out-0", 0, ONE))
    for told in ([], committed(0, "fail")):
        history = planted(*inputs, *copied(0, 1, "ok"), *copied(1, 2, "info"), *outputs, *told)
        assert found(history) == [("lost-output", False, (3,))]


def test_an_input_whose_send_has_no_outcome_may_have_an_output_unless_it_was_read() -> None:
    unknown = sent(1, None, "info")
    assert not found(planted(*unknown, *polled()))
    assert not found(planted(*unknown, *polled(("t-out-0", 0, ONE))))
    there = [(1, "poll", "invoke", [["poll"]], "final"), (1, "poll", "ok", [["poll", {"t-0": [[0, 1]]}]], "final")]
    assert found(planted(*unknown, *there)) == [("lost-output", False, (3,))]


def test_outputs_of_what_was_not_sent_are_found() -> None:
    assert found(planted(*sent(1, None, "fail"), *polled(("t-out-0", 0, ONE)))) == [("G1a", False, (1, 3))]
    assert found(planted(*polled(("t-out-0", 0, ONE)))) == [("unexpected", False, (1,))]


def test_outputs_keep_the_order_of_their_input_partition() -> None:
    swapped = polled(("t-out-0", 0, TWO), ("t-out-0", 1, ONE))
    assert found(planted(*sent(1, 0), *sent(2, 1), *swapped)) == [("reordered-output", False, (5,))]
    other_partition = polled(("t-out-1", 0, TWO), ("t-out-0", 1, ONE))
    assert not found(planted(*sent(1, 0), *sent(2, 1), *other_partition))


def test_a_place_holds_one_output() -> None:
    changed = [*polled(("t-out-0", 0, ONE), ("t-out-0", 1, TWO)), *polled(("t-out-0", 0, TWO))]
    assert ("inconsistent-offsets", False, (5, 7)) in found(planted(*sent(1, 0), *sent(2, 1), *changed))


@given(seed=st.integers(0, 1 << 32))
def test_a_copier_that_works_is_clean(seed: int) -> None:
    """Copies in transactions, some of which abort: what they sent is never shown."""
    rng = Random(seed)
    inputs: list[int] = []
    outputs: list[tuple[int, list[Any]]] = []
    events: list[tuple[int, Operation]] = []
    position = end = read = process = 0
    moment = 0

    def poll(*, final: bool) -> None:
        nonlocal read
        shown = [[offset, value] for offset, value in outputs if offset >= read]
        read = outputs[-1][0] + 1 if outputs else 0
        events.append((moment, Operation(0, "invoke", 1_000, 0, "poll", [["poll"]], None, final)))
        told = [["poll", {"t-out-0": shown}]]
        events.append((moment + 1, Operation(0, "ok", 1_000, 0, "poll", told, None, final)))

    for value in range(40):
        moment += 10
        kind = rng.choice(["ok", "ok", "ok", "info", "fail"])
        events.append((moment, Operation(0, "invoke", process, 0, "send", [["send", "t-0", value]])))
        is_there = kind == "ok" or (kind == "info" and rng.random() < 0.5)
        done = [["send", "t-0", [len(inputs), value]]] if kind == "ok" else None
        events.append((moment + 1, Operation(0, kind, process, 0, "send", done)))  # type: ignore[arg-type]
        if is_there:
            inputs.append(value)
        process += kind == "info"
        moment += 10
        if rng.random() < 0.3:
            count = rng.randint(0, len(inputs) - position)
            if rng.random() < 0.7:
                for number in range(position, position + count):
                    outputs.append((end + number - position, ["t-0", inputs[number]]))
                position += count
            # A marker, too, has an offset.
            end += count + 1
        elif rng.random() < 0.3:
            poll(final=False)
    for number in range(position, len(inputs)):
        outputs.append((end + number - position, ["t-0", inputs[number]]))
    read, moment = 0, moment + 10
    poll(final=True)
    assert not found(numbered(events))
