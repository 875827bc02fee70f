"""A job in this process, in the session of Spark that all tests share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from penstock.pipeline.config_reading import read_config
from penstock.pipeline.jobs.catalogue import find_job
from penstock.pipeline.running.runner import StopRequest, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STOP_TIMEOUT_S: Final = 60


def run_here(spark: SparkSession, name: str, told: Mapping[str, str]) -> None:
    """Until it ends by itself, which it has to do in order; `told` are its options as `--set` has them."""
    job = find_job(name)
    config: Any = read_config(job.config_type, text="", assignments=told)
    assert run(spark, job, config, stop=StopRequest(), stop_timeout_s=_STOP_TIMEOUT_S) == 0
