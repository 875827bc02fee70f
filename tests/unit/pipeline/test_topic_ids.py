"""A topic that was deleted and made anew is told from the one that a table has rows of, by their ids (KIP-516)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from penstock.pipeline.config import JobConfig
from penstock.pipeline.connector import admin_clients, source_topics
from penstock.pipeline.connector.deadline import Deadline
from penstock.pipeline.tables import source_ids
from penstock.pipeline.tables.source_ids import SourceIds
from penstock.pipeline.tables.topic_ids import RecreatedTopicError, begun_anew, following, without

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka.admin import TopicDescription
    from pyspark.sql import SparkSession

SPARK = cast("SparkSession", None)


def test_a_topic_of_another_id_is_refused_with_both_and_what_to_do() -> None:
    with pytest.raises(RecreatedTopicError) as refused:
        begun_anew({"a": "old", "b": "same"}, {"a": "new", "b": "same"}, (), table="lake/t", option="accept")
    sentence = str(refused.value)
    assert "topic a has the id new, and the table lake/t has rows of one with the id old" in sentence
    assert "Write to another table" in sentence
    assert "accept=new" in sentence


def test_a_job_that_cannot_go_on_with_such_a_table_names_no_option() -> None:
    with pytest.raises(RecreatedTopicError, match=r"with another checkpoint$"):
        begun_anew({"a": "old"}, {"a": "new"}, (), table="t")


@pytest.mark.parametrize(("noted", "found"), [({}, {"a": "new"}), ({"a": "old"}, {}), ({"a": "old"}, {"b": "new"})])
def test_a_topic_without_an_id_on_one_side_is_taken_for_the_one_that_it_was(
    noted: Mapping[str, str], found: Mapping[str, str]
) -> None:
    assert begun_anew(noted, found, (), table="t") == frozenset()


def test_an_id_is_accepted_for_itself_alone() -> None:
    """The option may stay where it is: the next time that the topic is made anew it has another id."""
    assert begun_anew({"a": "old"}, {"a": "new"}, ["new"], table="t") == {"a"}
    assert begun_anew({"a": "new"}, {"a": "new"}, ["new"], table="t") == frozenset()
    with pytest.raises(RecreatedTopicError, match="id newer"):
        begun_anew({"a": "new"}, {"a": "newer"}, ["new"], table="t")


def test_positions_of_a_topic_that_begins_anew_are_forgotten_and_its_id_with_them() -> None:
    assert without({"a": {0: 5}, "b": {1: 6}}, {"a"}) == {"b": {1: 6}}
    noted, found = {"a": "old", "b": "b1", "gone": "g1"}, {"a": "new", "c": "c1"}
    assert following({"b": {1: 6}, "gone": {0: 1}}, noted, found) == {"b": "b1", "gone": "g1"}
    assert following({"a": {0: 1}, "b": {1: 6}}, noted, found) == {"a": "new", "b": "b1"}


def test_a_table_of_version_0_1_gets_the_ids_of_its_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_ids, "source_topic_ids", lambda *_: {"a": "a1"})
    source = SourceIds(_config("a"), table="t")
    source.ask(SPARK, ())
    assert source.remaining({"a": {0: 5}}, {}) == {"a": {0: 5}}
    assert source.following({"a": {0: 7}}, {}) == {"a": "a1"}


def test_an_id_that_a_query_knows_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a topic that is made anew under it must not be noted as those of the topic that the table has."""
    answers = iter([{"a": "a1"}, {"a": "a2", "b": "b1"}])
    monkeypatch.setattr(source_ids, "source_topic_ids", lambda *_: next(answers))
    source = SourceIds(_config("a"), table="t")
    assert source.ask(SPARK, ())
    assert not source.ask(SPARK, ["a"])
    assert source.ask(SPARK, ["a", "b"])
    assert not source.ask(SPARK, ["b"])
    assert source.following({"a": {0: 1}, "b": {0: 1}}, {}) == {"a": "a1", "b": "b1"}


def test_topics_without_an_id_are_asked_about_once_when_their_rows_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_ids, "source_topic_ids", lambda *_: {})
    source = SourceIds(_config("a"), table="t")
    assert [source.ask(SPARK, topics) for topics in ((), ["a"], ["a"], ["a", "b"])] == [True, True, False, True]
    assert source.remaining({"a": {0: 5}}, {"a": "a1"}) == {"a": {0: 5}}


def test_ids_are_as_kafka_prints_them_and_zeros_of_an_older_broker_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Described:
        def __init__(self, topic_id: str) -> None:
            self.topic_id = topic_id

    def describe(
        _properties: Mapping[str, str], _topics: Sequence[str], _deadline: Deadline
    ) -> dict[str, TopicDescription]:
        return cast("dict[str, TopicDescription]", {"a": Described("AAAAAAAAAAAAAAAAAAAAAA"), "b": Described("b+/1")})

    monkeypatch.setattr(admin_clients, "describe_topics", describe)
    assert admin_clients.topic_ids({}, ["a", "b", "missing"], Deadline(1)) == {"b": "b-_1"}


def test_properties_that_only_java_can_have_check_nothing(caplog: pytest.LogCaptureFixture) -> None:
    config = JobConfig(
        bootstrap="b:1", checkpoint="c", topics=("a",), kafka={"sasl.jaas.config": "com.example.Login required;"}
    )
    assert source_topics.source_topic_ids(SPARK, config, Deadline(1)) == {}
    assert "ids cannot be asked: sasl.jaas.config names com.example.Login" in caplog.text


def test_a_deadline_is_over_when_it_is_given_up() -> None:
    is_stopped = False
    deadline = Deadline(3600, lambda: is_stopped)
    assert not deadline.is_over
    is_stopped = True
    assert deadline.is_over


def _config(*topics: str) -> JobConfig:
    return JobConfig(bootstrap="b:1", checkpoint="c", topics=topics)
