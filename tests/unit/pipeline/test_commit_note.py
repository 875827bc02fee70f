"""Which positions a Delta or Iceberg table is at, by what its commits carry."""

import pytest

from penstock.pipeline.tables.commit_note import CommitNote, LostPositionsError, encoded, latest


def note(sequence: int) -> CommitNote:
    return CommitNote(sequence=sequence, token=f"t{sequence}", writer="query/0", positions={"a": {0: sequence}})


def test_the_newest_note_counts_whatever_other_programs_committed_since() -> None:
    assert latest([None, '{"compacted":"by hand"}', "text", encoded(note(3)), encoded(note(2))], table="t") == note(3)


def test_a_note_of_version_0_1_has_no_topic_ids() -> None:
    text = '{"sequence":4,"token":"t4","writer":"query/0","positions":{"a":{"0":4}}}'
    assert latest([text], table="t") == note(4)
    assert note(4).topic_ids == {}


def test_a_table_without_commits_is_at_the_beginning() -> None:
    assert latest([], table="t") is None


def test_a_table_that_another_program_made_is_refused() -> None:
    with pytest.raises(LostPositionsError, match="the table t says"):
        latest([None, "text"], table="t")
