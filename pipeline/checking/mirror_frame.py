"""A topic against its mirror: the same records, once each, in the same order of each partition.

Records are compared by what they are (key, value, timestamp and headers), as offsets differ where transactions or
compaction leave gaps. Batches of the stream note a digest of each record of either side; the verdict joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window, functions

from ...chaos.checkers.finding import KEPT_OF_A_TYPE, Findings, Verdict, worst_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE: Final = "source"
MIRROR: Final = "mirror"
_TEXTS: Final = {
    "lost": "the record at offset {source} is not in the mirror",
    "duplicate": "the record at offset {source} is in the mirror again, at offset {mirror}",
    "unexpected": "the record at offset {mirror} of the mirror is not in the source",
    "reordered": "the record at offset {source} lies in the mirror at offset {mirror}, before an earlier one",
}


def digests(records: DataFrame, side: str) -> DataFrame:
    """`side`, `partition`, `offset` and `digest` of each record; binary fields are Base64 in what is digested."""
    fields = functions.struct("key", "value", "timestamp", "headers")
    text = functions.to_json(fields, {"ignoreNullFields": "false"})
    return records.select(
        functions.lit(side).alias("side"),
        "partition",
        "offset",
        functions.unhex(functions.sha2(text, 256)).alias("digest"),
    )


def verdict_of_mirror(rows: DataFrame, source: str) -> Verdict:
    """`rows` are those of `digests`, of both sides; `source` is the name of the topic."""
    sides = {side: functions.when(functions.col("side") == side, functions.col("offset")) for side in (SOURCE, MIRROR)}
    records = rows.groupBy("partition", "digest").agg(
        functions.count(sides[SOURCE]).alias("in_source"),
        functions.count(sides[MIRROR]).alias("in_mirror"),
        functions.min(sides[SOURCE]).alias("source"),
        functions.max(sides[MIRROR]).alias("mirror"),
    )
    in_order = Window.partitionBy("partition").orderBy("source")
    orders = (
        records.where("in_source = 1 and in_mirror = 1")
        .withColumn("before", functions.lag("mirror").over(in_order))
        .where("mirror < before")
        .select(
            "partition", "source", "mirror", functions.lit("reordered").alias("type"), functions.lit(1).alias("count")
        )
    )
    kind = (
        functions.when(functions.expr("in_source > in_mirror"), "lost")
        .when(functions.expr("in_source = 0"), "unexpected")
        .when(functions.expr("in_mirror > in_source"), "duplicate")
    )
    found = (
        records.select(
            "partition",
            "source",
            "mirror",
            kind.alias("type"),
            functions.expr("abs(in_source - in_mirror)").alias("count"),
        )
        .where("type is not null")
        .unionByName(orders)
        .persist()
    )
    try:
        counts = {
            row.type: row.total for row in found.groupBy("type").agg(functions.sum("count").alias("total")).collect()
        }
        first = Window.partitionBy("type").orderBy("partition", functions.coalesce("source", "mirror"))
        kept = found.withColumn("number", functions.row_number().over(first)).where(f"number <= {KEPT_OF_A_TYPE}")
        findings = Findings()
        for row in kept.orderBy("type", "number").collect():
            message = _TEXTS[row.type].format(source=row.source, mirror=row.mirror)
            detail = {"source": row.source, "mirror": row.mirror}
            findings.add(row.type, message, (), key=f"{source}-{row.partition}", detail=detail)
    finally:
        found.unpersist()
    sizes = {row.side: row.total for row in rows.groupBy("side").agg(functions.count("*").alias("total")).collect()}
    notes = () if sizes.get(SOURCE) else (f"no record of {source} was read, so nothing was put to the test",)
    return Verdict(
        valid="anomalies" if counts else "invalid-run" if notes else "valid",
        findings=tuple(worst_first(findings.checked().findings)),
        counts=counts,
        statistics={"topics": {"source": sizes.get(SOURCE, 0), "mirror": sizes.get(MIRROR, 0)}},
        notes=notes,
    )
