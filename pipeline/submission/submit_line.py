"""The line of spark-submit that runs a job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..connector.artefacts import EXCLUDED, Artefact

PROGRAM: Final = Path(__file__).with_name("main.py")


def submit_line(
    job: str,
    *,
    program: str,
    master: str,
    artefacts: Sequence[Artefact],
    jars: Sequence[Path],
    archive: str | None,
    file: Path | None,
    assignments: Mapping[str, str],
) -> str:
    """One line of a shell. Without `jars` Spark fetches them; `archive` brings Python to machines that lack penstock;
    `file`, the job's config, is sent along to wherever the driver runs."""
    settings = [(key, value) for artefact in artefacts for key, value in artefact.settings]
    if archive is not None:
        settings += [("spark.pyspark.python", "./environment/bin/python")]
    words = [
        program,
        *("--master", master),
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
