"""A checkpoint is continued with what it was begun with, and refused with anything else."""

from __future__ import annotations

import msgspec
import pytest

from penstock.pipeline.job import JobError
from penstock.pipeline.jobs.join import JoinConfig
from penstock.pipeline.jobs.lake import LakeConfig
from penstock.pipeline.jobs.mirror import MirrorConfig
from penstock.pipeline.jobs.windows import WindowsConfig
from penstock.pipeline.running.checkpoint_owner import CheckpointOwner, compare
from penstock.pipeline.tables.settings import TableSettings


def _owner(**settings: str) -> CheckpointOwner:
    return CheckpointOwner(job="lake", name="lake", state_version=1, source="orders", settings=settings)


def test_another_table_is_refused_as_it_would_lack_what_was_read_before() -> None:
    compare("work/lake-v1", _owner(table="lake/orders"), _owner(table="lake/orders"))
    with pytest.raises(JobError, match=r"begun with the table 'lake/orders' .*, and this is 'lake/other'"):
        compare("work/lake-v1", _owner(table="lake/orders"), _owner(table="lake/other"))


def test_settings_that_an_older_version_did_not_write_are_not_compared() -> None:
    text = b'{"job":"lake","name":"lake","state_version":1,"source":"orders","penstock":"0.1.0"}'
    compare("work/lake-v1", msgspec.json.decode(text, type=CheckpointOwner), _owner(table="lake/orders"))


def test_sources_of_a_mirror_are_bound_in_their_order() -> None:
    """Spark tells them by their order: the offsets of one would be taken for those of another."""
    one = MirrorConfig(checkpoint="work", sink_bootstrap="s:1", sources={"east": "e:1", "north": "n:1"}, topics=("a",))
    other = msgspec.structs.replace(one, sources={"north": "n:1", "east": "e:1"})
    compare("work/mirror-v1", _owner(**one.bound_settings()), _owner(**one.bound_settings()))
    with pytest.raises(JobError, match=r"sources 'east,north' .*, and this is 'north,east'"):
        compare("work/mirror-v1", _owner(**one.bound_settings()), _owner(**other.bound_settings()))


def test_the_table_of_a_job_is_bound_whether_it_must_have_one_or_may() -> None:
    lake = LakeConfig(bootstrap="b:1", checkpoint="work", topics=("a",), table=TableSettings(location="lake/orders/"))
    assert lake.bound_settings() == {"table": "lake/orders"}
    windows = WindowsConfig(bootstrap="b:1", checkpoint="work", topics=("a",), window_ms=1, output_topic="counts")
    assert windows.bound_settings()["table"] == ""


def test_state_of_windows_is_bound_to_what_it_counts() -> None:
    """Spark compares types only, so that the sums of one field would go on with those of another."""
    one = WindowsConfig(
        bootstrap="b:1", checkpoint="w", topics=("a",), window_ms=1, output_topic="x", aggregates=("sum(a)",)
    )
    for changed in ({"aggregates": ("sum(b)",)}, {"group_by": ("city",)}, {"window_ms": 2}):
        other = msgspec.structs.replace(one, **changed)
        with pytest.raises(JobError, match=f"begun with the {next(iter(changed))} "):
            compare("work/windows-v1", _owner(**one.bound_settings()), _owner(**other.bound_settings()))


def test_a_topic_that_was_made_anew_is_refused_as_its_offsets_are_of_other_records() -> None:
    before = msgspec.structs.replace(_owner(), topic_ids={"orders": "old"})
    compare("work/lake-v1", before, before)
    with pytest.raises(JobError, match=r"begun with the topic orders of the id old .*, and its id is new"):
        compare("work/lake-v1", before, msgspec.structs.replace(before, topic_ids={"orders": "new"}))


def test_a_topic_whose_id_is_not_known_is_not_compared() -> None:
    known = msgspec.structs.replace(_owner(), topic_ids={"orders": "old"})
    compare("work/lake-v1", known, _owner())
    compare("work/lake-v1", _owner(), known)


def test_a_topic_that_a_table_begins_anew_needs_a_checkpoint_that_was_begun_with_it() -> None:
    now = msgspec.structs.replace(_owner(), topic_ids={"orders": "new"})
    compare("work/lake-v1", now, now, begun_anew={"orders"})
    with pytest.raises(JobError, match=r"of the id \(not noted\) .*, and its id is new"):
        compare("work/lake-v1", _owner(), now, begun_anew={"orders"})


def test_a_checkpoint_of_two_streams_has_offsets_of_both() -> None:
    joined = JoinConfig(bootstrap="b:1", checkpoint="w", topics=("a",), right_topic="b", output_topic="c")
    assert joined.offset_topics() == ("a", "b")
    with_table = msgspec.structs.replace(joined, right_topic="", table_topic="b")
    assert with_table.offset_topics() == ("a",)
