"""What becomes of records that a job's table cannot take."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ..config import JobConfig
from ..records.dead_letters import used, write_dead_letters


def refuse(rejected: DataFrame, config: JobConfig, job_name: str) -> None:
    """To the dead-letter topic; without one, and unless such records are to be skipped, the first ends the query."""
    write_dead_letters(rejected, config, job_name)
    used(rejected, config, job_name).write.format("noop").mode("overwrite").save()
