"""The ids of the topics that a table is written from, as one query of a job has come to know them. A shell."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from ..config import JobConfig
from ..connector.deadline import Deadline
from ..connector.source_topics import TIMEOUT_S, source_topic_ids
from . import topic_ids as rules
from .positions import Positions


class SourceIds:
    """An id that is known stays: rows of a topic that is made anew under the query are noted with the id of before, so
    that the next run is refused. The other way round nothing would find them out."""

    def __init__(self, config: JobConfig, *, table: str, accepted: Collection[str] = (), option: str = "") -> None:
        """`accepted` and `option` as in `topic_ids.begun_anew`."""
        self._config = config
        self._table = table
        self._accepted = accepted
        self._option = option
        self._found: Mapping[str, str] = {}
        # Not those that were only not there: a broker may know a topic of late.
        self._asked: frozenset[str] | None = None

    def ask(self, spark: SparkSession, topics: Collection[str]) -> bool:
        """Asks the cluster unless it was asked for these topics before. Raises RequestError."""
        if self._asked is not None and self._asked.issuperset(topics):
            return False
        self._found = {**source_topic_ids(spark, self._config, Deadline(TIMEOUT_S)), **self._found}
        self._asked = frozenset({*(self._asked or ()), *self._found, *topics})
        return True

    def remaining(self, positions: Positions, noted: Mapping[str, str]) -> Positions:
        """The positions of a table that hold for the topics as they are now. Raises RecreatedTopicError."""
        anew = rules.begun_anew(noted, self._found, self._accepted, table=self._table, option=self._option)
        return rules.without(positions, anew)

    def following(self, positions: Positions, noted: Mapping[str, str]) -> Mapping[str, str]:
        return rules.following(positions, noted, self._found)
