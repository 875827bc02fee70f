"""The line of spark-submit that runs a job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..connector.artefacts import EXCLUDED, Artefact
from ..connector.java import DEEP_STACKS

PROGRAM: Final = Path(__file__).with_name("main.py")
_SECRET: Final = re.compile(r"password|secret|jaas|credential|user\.info|token|ssl\..*key$", re.IGNORECASE)


def submit_line(
    job: str,
    *,
    program: str,
    master: str,
    deploy_mode: str,
    python: str,
    artefacts: Sequence[Artefact],
    jars: Sequence[Path],
    archive: str | None,
    file: Path | None,
    assignments: Mapping[str, str],
) -> str:
    """One line of a shell. Without `jars` Spark fetches them. `python` has penstock, on this machine and, without an
    `archive`, at the same place on the others; an `archive` brings another one to them. `file`, the job's config, is
    sent along to wherever the driver runs: here (client), or on a machine of the cluster."""
    settings = [(key, value) for artefact in artefacts for key, value in artefact.settings]
    settings.append(("spark.driver.extraJavaOptions", DEEP_STACKS))
    settings.append(("spark.pyspark.python", python if archive is None else "./environment/bin/python"))
    if archive is not None and deploy_mode == "client":
        settings.append(("spark.pyspark.driver.python", python))
    words = [
        program,
        *("--master", master, "--deploy-mode", deploy_mode),
        *(
            ("--jars", ",".join(map(str, jars)))
            if jars
            else (
                *("--packages", ",".join(artefact.coordinate for artefact in artefacts)),
                *("--exclude-packages", ",".join(EXCLUDED)),
            )
        ),
        *(word for key, value in settings for word in ("--conf", f"{key}={value}")),
        *(("--archives", f"{archive}#environment") if archive is not None else ()),
        *(("--files", str(file)) if file is not None else ()),
        str(PROGRAM),
        job,
        *(("--config", str(file)) if file is not None else ()),
        *(word for key, value in assignments.items() for word in ("--set", f"{key}={value}")),
    ]
    return shlex.join(words)


def secrets_in(assignments: Mapping[str, str]) -> tuple[str, ...]:
    """Names of options that are passwords and the like: on a line they are seen in the history of the shell, and by
    all users of the machine while the program runs."""
    return tuple(sorted(name for name in assignments if _SECRET.search(name)))
