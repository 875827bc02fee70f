"""Results as records of a topic: each row under its key, at least once."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from ..config import JobConfig
from ..source import sink_options


def write_results(rows: DataFrame, key: Column, columns: tuple[str, ...], config: JobConfig, topic: str) -> None:
    """The columns as JSON, with nulls, under the key. A batch that is run again writes its records again, in the same
    order for each key, so that the last record of a key is the same."""
    value = F.to_json(F.struct(*(F.col(f"`{name}`") for name in columns)), {"ignoreNullFields": "false"})
    records = rows.select(key.cast("binary").alias("key"), value.cast("binary").alias("value"))
    records.write.format("kafka").options(**sink_options(config)).option("topic", topic).save()


def joined_key(parts: list[Column]) -> Column:
    """Texts with `|` between them. In a text `|` and `\\` are behind a `\\`; null is `\\N`."""
    escaped = [F.coalesce(F.regexp_replace(part.cast("string"), r"([\\|])", r"\\$1"), F.lit(r"\N")) for part in parts]
    return F.concat_ws("|", *escaped)
