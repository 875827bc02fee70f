"""The jobs of the demo: what each is told, and a run of one as its users run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import click

HOUR_MS: Final = 3_600_000
DEPARTURES: Final = "departures-by-hour"
WITH_WEATHER: Final = "flights-with-weather"

_WEEK_MS: Final = 7 * 24 * HOUR_MS
"""Airports are on partitions of their own, which a batch reads at about the same pace: a week apart they never are."""
_BATCH: Final = 60_000

WINDOWS: Final = f"""
topics = ["flights"]
window_ms = {HOUR_MS}
watermark_delay_ms = {_WEEK_MS}
max_offsets_per_trigger = {_BATCH}
group_by = ["origin"]
aggregates = ["departures=count(dep_time)", "mean_delay=avg(dep_delay)"]
output_topic = "{DEPARTURES}"

[value]
format = "json"
schema = "origin STRING, dep_time INT, dep_delay DOUBLE"
"""

JOIN: Final = f"""
topics = ["flights"]
key = ["origin", "time_hour"]
watermark_delay_ms = {_WEEK_MS}
right_topic = "weather"
right_key = ["origin", "time_hour"]
right_watermark_delay_ms = {_WEEK_MS}
before_ms = {HOUR_MS - 1}
after_ms = 0
max_offsets_per_trigger = {_BATCH}
output_topic = "{WITH_WEATHER}"

[value]
format = "json"
schema = "origin STRING, time_hour STRING, carrier STRING, flight INT, dest STRING, dep_delay DOUBLE"

[right_value]
format = "json"
schema = "origin STRING, time_hour STRING, temp DOUBLE, precip DOUBLE, visib DOUBLE"
"""

LAKE: Final = """
topics = ["flights"]

[table]
location = "{location}"

[value]
format = "json"
schema = "origin STRING, carrier STRING, flight INT, dest STRING, dep_delay DOUBLE"
"""


def fetch_jars() -> None:
    """Where Java or the jars are missing, a sentence says how to get them. Raises ClickException."""
    _penstock("pipeline", "jars")


def run_job(name: str, options: str, *, bootstrap: str, folder: Path) -> None:
    """Until everything that is in its topics is done. Raises ClickException."""
    file = folder / f"{name}.toml"
    file.write_text(options)
    where = ("--bootstrap", bootstrap, "--checkpoint", str(folder / "checkpoints"))
    settings = ("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false")
    _penstock("pipeline", "run", name, *where, "--config", str(file), "--available-now", *settings)


def _penstock(*words: str) -> None:
    """What it prints is seen: its progress, and why it failed."""
    if subprocess.run([sys.executable, "-P", "-m", "penstock", *words], check=False).returncode:
        raise click.ClickException(f"`penstock {' '.join(words[:3])}` failed.")
