"""`penstock pipeline`: jobs are listed, run here, or shown as a line for spark-submit; their jars are fetched."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..client.assignments import parse_assignments
from ..client.bootstrap import ENVIRONMENT_VARIABLE
from ..client.options import Command, with_options
from ..client.terminal import print_table
from .config_reading import ConfigError, read_config, text_of
from .connector.artefacts import Artefact, UnsuitableSparkError, artefacts, check_spark_version
from .connector.jars import JarsMissingError, given, resolve, spark_submit
from .connector.java import JavaMissingError, java_home
from .job import Job, JobError, instance_name
from .jobs.catalogue import HELP, find_job

if TYPE_CHECKING:
    from .config import JobConfig

_STOP_TIMEOUT_S: Final = 60.0


@click.command("jobs")
def jobs() -> None:
    """List the jobs, with the options of each and their defaults."""
    for name, text in HELP.items():
        click.echo(f"{click.style(name, bold=True)}: {text}")
    click.echo()
    click.echo("Options of a job: penstock pipeline run JOB --options")


def _job(_context: click.Context, _parameter: click.Parameter, name: str) -> Job[Any]:
    with _sentences():
        return find_job(name)


_job_argument = click.argument("job", type=click.Choice([*HELP]), callback=_job)


def _told(command: Command) -> Command:
    """The options by which a job is told what to do."""
    return with_options(
        command,
        click.option(
            "--bootstrap",
            "-b",
            envvar=ENVIRONMENT_VARIABLE,
            metavar="HOST:PORT,…",
            help="The cluster that is read.",
        ),
        click.option(
            "--checkpoint",
            metavar="FOLDER",
            help="Below it the job keeps what it has done: a path or a URI, which all machines of a cluster see.",
        ),
        click.option(
            "--config", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file in TOML."
        ),
        click.option(
            "--set",
            "assignments",
            multiple=True,
            callback=parse_assignments,
            metavar="KEY=VALUE",
            help="One option of the job.",
        ),
        click.option("--available-now", is_flag=True, help="End when what is there now has been read."),
    )


_repository_option = click.option(
    "--repository", metavar="URL", help="A Maven repository for the jars (or MAVEN_REPOSITORY_URL; else Spark's own)."
)
_jars_option = click.option(
    "--jars-dir", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Take the jars from this folder."
)


@click.command("run")
@_job_argument
@_told
@click.option("--master", default="local[*]", show_default=True, help="Spark's: local[N], spark://…, yarn, k8s://….")
@click.option(
    "--conf", "settings", multiple=True, callback=parse_assignments, metavar="KEY=VALUE", help="One of Spark's."
)
@click.option("--stop-timeout", default=_STOP_TIMEOUT_S, metavar="SECONDS", help="How long a batch may take to finish.")
@click.option("--options", is_flag=True, help="Print the job's options and end.")
@_jars_option
@_repository_option
def run(
    job: Job[Any],
    bootstrap: str | None,
    checkpoint: str | None,
    master: str,
    file: Path | None,
    assignments: Mapping[str, str],
    available_now: bool,
    settings: Mapping[str, str],
    stop_timeout: float,
    options: bool,
    jars_dir: Path | None,
    repository: str | None,
) -> None:
    """Run a job in a Spark of this process, or on a cluster that --master names, until it ends or is stopped.

    SIGTERM and Ctrl-C finish the batch in progress first.
    """
    if options:
        print_options(job)
        return
    with _sentences():
        config = config_of(job, file, _given(assignments, bootstrap, checkpoint, available_now=available_now))
        from py4j.protocol import Py4JError

        from .progress.progress import Progress, progress_config
        from .running.runner import run as run_job
        from .running.runner import stop_on_signals
        from .running.session import local_session

        with stop_on_signals() as stop:
            found, jars, home = _prepared(job, config, jars_dir, repository)
            spark = local_session(
                f"penstock-{instance_name(job, config)}",
                master=master,
                artefacts=found,
                jars=jars,
                java_home=home,
                settings=settings,
            )
        with stop_on_signals() as later:
            if stop:
                later.set()
            try:
                with Progress(progress_config(job, config)) as progress:
                    progress.attach(spark)
                    status = run_job(spark, job, config, stop=later, stop_timeout_s=stop_timeout, say=progress.say)
            finally:
                # A Java process that is gone needs no stop.
                with suppress(Py4JError, OSError):
                    spark.stop()
    raise SystemExit(status)


@click.command("submit")
@_job_argument
@_told
@click.option("--master", default="spark://HOST:7077", show_default=True, help="Spark's: spark://…, yarn, k8s://….")
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    show_default=True,
    help="Whether the driver runs here, or on a machine of the cluster.",
)
@click.option(
    "--archive", metavar="FILE", help="A packed Python environment that has penstock, for machines without it."
)
@_jars_option
def submit(
    job: Job[Any],
    bootstrap: str | None,
    checkpoint: str | None,
    master: str,
    file: Path | None,
    assignments: Mapping[str, str],
    available_now: bool,
    deploy_mode: str,
    archive: str | None,
    jars_dir: Path | None,
) -> None:
    """Print the line that runs a job on a cluster of Spark."""
    from .submission.submit_line import secrets_in, submit_line

    with _sentences():
        given_here = _given(assignments, bootstrap, checkpoint, available_now=available_now)
        config = config_of(job, file, given_here)
        version = _spark_version()
        needed = artefacts(job.artefacts(config), version)
        line = submit_line(
            job.name,
            program=shutil.which("spark-submit") or str(spark_submit()),
            master=master,
            deploy_mode=deploy_mode,
            python=sys.executable,
            artefacts=needed,
            jars=() if jars_dir is None else given(needed, jars_dir),
            archive=archive,
            file=file,
            assignments=given_here,
        )
    if secrets := secrets_in(given_here):
        told = f"warning: the line has {', '.join(secrets)} for all to see: keep such options in the file of --config"
        click.echo(told, err=True)
    click.echo(line)


@click.command("jars")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Copy the jars into this folder, too.")
@click.option("--with", "names", multiple=True, type=click.Choice(["avro", "protobuf", "delta", "iceberg"]))
@_repository_option
def jars(output: Path | None, names: tuple[str, ...], repository: str | None) -> None:
    """Fetch the jars of Spark's Kafka connector, as the first run would by itself."""
    with _sentences():
        needed = artefacts(names, _spark_version())
        found = resolve(needed, repository=repository, java_home=java_home())
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
            found = tuple(Path(shutil.copy(jar, output)) for jar in found)
    for jar in found:
        click.echo(str(jar))


def print_options(job: Job[Any]) -> None:
    """The fields of a job's config with type and default."""
    import msgspec

    rows = []
    for field in msgspec.structs.fields(job.config_type):
        default = "" if field.required else repr(field.default if field.default is not msgspec.NODEFAULT else {})
        rows.append((field.encode_name, str(getattr(field.type, "__name__", field.type)), default or "(required)"))
    print_table(("option", "type", "default"), rows)


def config_of(job: Job[Any], file: Path | None, assignments: Mapping[str, str]) -> JobConfig:
    """Raises ConfigError."""
    config: JobConfig = read_config(
        job.config_type, text=text_of(file), assignments=assignments, where="the options" if file is None else file.name
    )
    return config


def _given(
    assignments: Mapping[str, str], bootstrap: str | None, checkpoint: str | None, *, available_now: bool
) -> dict[str, str]:
    """Options of the command line as assignments; what was set by --set wins."""
    named = {"bootstrap": bootstrap, "checkpoint": checkpoint, "available_now": "true" if available_now else None}
    return {**{name: value for name, value in named.items() if value is not None}, **assignments}


def _prepared(
    job: Job[Any], config: JobConfig, jars_dir: Path | None, repository: str | None
) -> tuple[tuple[Artefact, ...], tuple[Path, ...], str | None]:
    """The artefacts of a job, their jars, and Java."""
    needed = artefacts(job.artefacts(config), _spark_version())
    home = java_home()
    if jars_dir is not None:
        return needed, given(needed, jars_dir), home
    return needed, resolve(needed, repository=repository, java_home=home), home


def _spark_version() -> str:
    """Raises UnsuitableSparkError; ImportError is for `_sentences`."""
    import pyspark

    version: str = pyspark.__version__
    check_spark_version(version)
    return version


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f"The pipeline needs PySpark ({error}): pip install 'penstock-broker[pipeline]'."
        ) from error
    except (ConfigError, JarsMissingError, JavaMissingError, JobError, UnsuitableSparkError) as error:
        raise click.ClickException(str(error)) from error
