"""Records that cannot be used: written to a dead-letter topic, counted, or the end of the job. Never dropped in
silence.

A dead letter has the key, the value and the headers of its record, and further headers: `penstock.reason`,
`penstock.source.topic`, `.partition`, `.offset` and `.timestamp` (milliseconds), and `penstock.job`. Spark's sink
delivers at least once: a batch that is run again writes its dead letters again, with the same source offsets.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from ..config import JobConfig
from ..source import sink_options
from .decoding import ENCODED, REASON

METRIC: Final = "bad_records"
"""Of the observed metrics of the query's progress: how many a batch had."""
_HEADERS: Final = "array<struct<key:string,value:binary>>"


def used(decoded: DataFrame, config: JobConfig, name: str, *, side: str = "records") -> DataFrame:
    """The records that can be used, of a stream or a batch, for a job of this name.

    With a dead-letter topic the others are left out here, and `write_dead_letters` writes them; with `on_bad_record` =
    "skip" they are left out and counted in the query's progress, as `side`; else the first one ends the query.
    """
    if config.dead_letter_topic or config.on_bad_record == "skip":
        return counted(decoded, side=side).where(F.col(REASON).isNull())
    refused = F.raise_error(
        F.concat(
            F.lit(f"{name} stops at a record that it cannot use: "),
            F.concat_ws("-", "topic", F.col("partition").cast("string")),
            F.lit(" at offset "),
            F.col("offset").cast("string"),
            F.lit(": "),
            F.col(REASON),
            F.lit('. A dead_letter_topic takes such records; on_bad_record = "skip" counts them and goes on.'),
        )
    )
    return decoded.where(F.when(F.col(REASON).isNull(), True).otherwise(refused.cast("boolean")))


def counted(decoded: DataFrame, *, side: str = "records") -> DataFrame:
    """The same records; the progress of a query of them says how many are bad."""
    return decoded.observe(side, F.count_if(F.col(REASON).isNotNull()).alias(METRIC))


def write_dead_letters(decoded: DataFrame, config: JobConfig, name: str) -> None:
    """Those of a batch, at least once. Nothing without a dead-letter topic."""
    if config.dead_letter_topic:
        bad = decoded.where(F.col(REASON).isNotNull())
        write_set_aside(bad, config, name, config.dead_letter_topic)


def write_set_aside(records: DataFrame, config: JobConfig, name: str, topic: str) -> None:
    """Records as they came, with their `reason` and position as headers, to a topic, at least once."""
    letters = set_aside(records, name)
    letters.write.format("kafka").options(**sink_options(config)).option("topic", topic).save()


def set_aside(records: DataFrame, name: str) -> DataFrame:
    """`key`, `value` and `headers` of what is written."""
    added = F.array(
        _header("penstock.reason", F.col(REASON)),
        _header("penstock.source.topic", F.col("topic")),
        _header("penstock.source.partition", F.col("partition")),
        _header("penstock.source.offset", F.col("offset")),
        _header("penstock.source.timestamp", F.unix_millis("timestamp")),
        _header("penstock.job", F.lit(name)),
    )
    headers = F.concat(F.coalesce("headers", F.array().cast(_HEADERS)), added)
    return records.select("key", F.col(ENCODED).alias("value"), headers.alias("headers"))


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
