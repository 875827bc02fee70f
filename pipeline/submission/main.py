"""What spark-submit runs: a job, in the session that spark-submit has set up."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Runs `JOB [--config FILE] [--set KEY=VALUE]…`; returns the exit status."""
    from penstock.pipeline.config_reading import ConfigError, read_config, text_of
    from penstock.pipeline.connector.artefacts import artefacts
    from penstock.pipeline.job import JobError, instance_name
    from penstock.pipeline.jobs.catalogue import HELP, find_job
    from penstock.pipeline.progress.progress import Progress, progress_config
    from penstock.pipeline.running.runner import run, stop_on_signals
    from penstock.pipeline.running.session import submitted_session

    parser = argparse.ArgumentParser(description="Run a job of penstock's pipeline.")
    parser.add_argument("job", choices=[*HELP])
    parser.add_argument("--config", help="a file in TOML")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one option")
    parser.add_argument("--stop-timeout", type=float, default=60.0, metavar="SECONDS")
    options = parser.parse_args(arguments)
    job = find_job(options.job)
    try:
        config = read_config(
            job.config_type,
            text=text_of(_beside_driver(options.config)),
            assignments=dict(one.split("=", 1) for one in options.set),
        )
        from pyspark import __version__ as spark_version

        spark = submitted_session(
            f"penstock-{instance_name(job, config)}", artefacts=artefacts(job.artefacts(config), spark_version)
        )
        try:
            with stop_on_signals() as stop, Progress(progress_config(job, config)) as progress:
                progress.attach(spark)
                return run(spark, job, config, stop=stop, stop_timeout_s=options.stop_timeout, say=progress.say)
        finally:
            spark.stop()
    except (ConfigError, JobError) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1


def _beside_driver(path: str | None) -> Path | None:
    """The file, or what `--files` has laid beside the driver."""
    here = None if path is None else Path(path)
    return here if here is None or here.exists() else Path(here.name)


if __name__ == "__main__":
    # Python puts the folder of a program in front of all others: its neighbours are penstock's, under its name only.
    if sys.path and Path(sys.path[0]).resolve() == Path(__file__).parent.resolve():
        del sys.path[0]
    sys.exit(main(sys.argv[1:]))
