"""Numbers of records in the order of their offsets: what is lost, there again, or out of order."""

from __future__ import annotations

from random import Random

import pytest

from penstock.pipeline.checking import number_sequence
from penstock.pipeline.checking.number_sequence import Gap, Misplaced, NumberSequence
from penstock.pipeline.checking.topic_verdict import Counted, Place, verdict_of
from penstock.pipeline.jobs.check import CheckConfig


def taken(sequence: NumberSequence, *numbers: int) -> list[Misplaced]:
    """The offset of a record is its place."""
    found = [sequence.take(number, offset) for offset, number in enumerate(numbers)]
    return [one for one in found if one is not None]


def test_numbers_in_order_are_clean() -> None:
    sequence = NumberSequence()
    assert taken(sequence, *range(100)) == []
    assert (sequence.lost, sequence.records) == (0, 100)


def test_a_number_that_never_comes_is_a_gap_with_the_offset_behind_it() -> None:
    sequence = NumberSequence()
    assert taken(sequence, 0, 1, 4) == []
    assert sequence.gaps == [Gap(2, 3, 2)]
    assert sequence.lost == 2


def test_the_first_number_is_expected_unless_any_will_do() -> None:
    assert (NumberSequence(), taken(one := NumberSequence(), 3), one.lost)[2] == 3
    assert (taken(any_ := NumberSequence(next_number=None), 3, 4), any_.lost) == ([], 0)


def test_what_comes_late_closes_its_gap_and_is_reordered() -> None:
    sequence = NumberSequence()
    assert taken(sequence, 0, 5, 3, 2, 4, 1) == [
        Misplaced("reordered", number, offset) for offset, number in enumerate((3, 2, 4, 1), start=2)
    ]
    assert sequence.lost == 0


def test_what_is_there_again_is_a_duplicate_even_if_it_came_late() -> None:
    sequence = NumberSequence()
    assert taken(sequence, 0, 0, 2, 1, 1) == [
        Misplaced("duplicate", 0, 1), Misplaced("reordered", 1, 3), Misplaced("duplicate", 1, 4),
    ]  # fmt: skip


def test_gaps_beyond_the_bound_are_lost_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_sequence, "GAPS_MAX", 2)
    sequence = NumberSequence()
    taken(sequence, 0, 2, 4, 6, 8)
    assert (len(sequence.gaps), sequence.given_up, sequence.lost) == (2, 2, 4)


def test_random_orders_are_judged_as_plain_sets_judge_them() -> None:
    for seed in range(200):
        random = Random(seed)
        numbers = [random.randrange(30) for _ in range(random.randrange(1, 40))]
        sequence = NumberSequence()
        found = taken(sequence, *numbers)
        assert sequence.lost == max(numbers) + 1 - len(set(numbers))
        again = [one for place, one in enumerate(numbers) if one in numbers[:place]]
        assert [one.number for one in found if one.kind == "duplicate"] == again
        late = [
            one
            for place, one in enumerate(numbers)
            if one not in numbers[:place] and one < max(numbers[:place], default=-1)
        ]
        assert [one.number for one in found if one.kind == "reordered"] == late


def test_the_verdict_counts_all_and_names_some() -> None:
    sequence = NumberSequence()
    taken(sequence, *range(0, 2_000, 2))
    place = Place("t", 3, "producer")
    counted = Counted(counts={"duplicate": 50}, kept={"duplicate": [(7, 9)]})
    verdict = verdict_of([(place, sequence)], [(place, counted)])
    assert verdict.valid == "anomalies"
    assert verdict.counts == {"lost": 999, "duplicate": 50}
    assert verdict.findings[0].message == "number 1 of producer never came; what is behind lies at offset 1"
    assert verdict.findings[-1].message == "number 7 of producer is there again, at offset 9"
    assert {finding.key for finding in verdict.findings} == {"t-3"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "either `history` or `topics`"),
        ({"history": "h", "topics": ("t",), "bootstrap": "b"}, "either `history` or `topics`"),
        ({"topics": ("t",)}, "`bootstrap` is missing"),
        ({"topic_pattern": "t.*", "bootstrap": "b", "mirror_topic": "m"}, "the one topic that is mirrored"),
        ({"history": "h", "first_number": -2}, "`first_number` is at least 0"),
    ],
)
def test_a_config_that_names_no_single_thing_to_check_is_refused(fields: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CheckConfig(checkpoint="c", output="o", **fields)  # type: ignore[arg-type]
