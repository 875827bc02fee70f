"""Numbered records of topics, batch by batch: of each sequence what is missing, there again, or out of order.

A sequence is the records of one partition with one name (that of their producer or of their key). A batch is judged
with the state that the batch before it left, and leaves two kinds of rows: `found`, records of it that are misplaced,
and `state`, how each sequence stands, those included that had no record in it. Both lie in one folder for each batch,
so a batch that is done again begins with the same state and replaces what it has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import pandas as pd
from pyspark.sql import functions

from .number_sequence import NumberSequence
from .topic_verdict import counted_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOUND: Final = "found"
STATE: Final = "state"
COLUMNS: Final = "topic string, partition int, sequence string, what string, told string"
_GROUP: Final = ("topic", "partition", "sequence")


def numbered(records: DataFrame, sequence: str, number: str) -> DataFrame:
    """`sequence` and `number` are expressions of Spark's SQL over the columns of a record; a record without a number
    has -1."""
    return records.select(
        "topic",
        "partition",
        "offset",
        functions.coalesce(functions.expr(sequence).cast("string"), functions.lit("")).alias("sequence"),
        functions.coalesce(functions.expr(f"try_cast(({number}) as bigint)"), functions.lit(-1)).alias("number"),
    )


def judged_batch(records: DataFrame, before: DataFrame | None, first_number: int | None) -> DataFrame:
    """Rows of COLUMNS: of records that `numbered` made, and what the batch before has left, None for the first."""
    if before is None:
        before = records.sparkSession.createDataFrame([], COLUMNS)

    def judge(group: tuple[Any, ...], rows: pd.DataFrame, states: pd.DataFrame) -> pd.DataFrame:
        if len(states):
            sequence = msgspec.json.decode(states["told"].iloc[0], type=NumberSequence)
        else:
            sequence = NumberSequence(next_number=first_number)
        # A sequence has its order by offsets; a batch of Spark's has none.
        rows = rows.sort_values("offset")
        counted = counted_in(sequence, zip(rows["number"].tolist(), rows["offset"].tolist(), strict=True))
        told = [(*group, STATE, msgspec.json.encode(sequence).decode())]
        if counted.counts:
            told.append((*group, FOUND, msgspec.json.encode(counted).decode()))
        return pd.DataFrame(told, columns=["topic", "partition", "sequence", "what", "told"])

    states = before.where(functions.col("what") == STATE)
    return records.groupBy(*_GROUP).cogroup(states.groupBy(*_GROUP)).applyInPandas(judge, COLUMNS)
