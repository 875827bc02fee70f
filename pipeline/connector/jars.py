"""The jars of artefacts in a folder: resolved once by Spark's own resolver (Ivy), or given."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from ...client.cached_programs import cache_folder
from .artefacts import EXCLUDED, Artefact

REPOSITORY_VARIABLE: Final = "MAVEN_REPOSITORY_URL"
"""Names a Maven repository, asked before Maven Central."""
_TIMEOUT_S: Final = 600
# Spark itself asks what is named by `--repositories` last. The second one is Maven Central.
_IVY_SETTINGS: Final = """<ivysettings>
<settings defaultResolver="all"/>
<resolvers><chain name="all" returnFirst="true">
<ibiblio name="named" m2compatible="true" root={root}/>
<ibiblio name="central" m2compatible="true"/>
</chain></resolvers>
</ivysettings>
"""


class JarsMissingError(Exception):
    """Jars cannot be had; the message says which and how to get them."""


def resolve(artefacts: Sequence[Artefact], *, repository: str | None, java_home: str | None) -> tuple[Path, ...]:
    """The jars of artefacts and of what they depend on, in a folder of the cache for just this set. `repository` is the
    URL of a Maven repository, or None for that of the environment, if any, and Spark's defaults.

    Raises JarsMissingError when they are not in the cache and cannot be fetched.
    """
    coordinates = [artefact.coordinate for artefact in artefacts]
    stamp = hashlib.sha256("\n".join(sorted(coordinates)).encode()).hexdigest()[:16]
    folder = cache_folder() / f"spark-jars-{stamp}"
    if not folder.is_dir():
        _fetch(coordinates, folder, repository or os.environ.get(REPOSITORY_VARIABLE), java_home)
    return tuple(sorted(folder.glob("*.jar")))


def given(artefacts: Iterable[Artefact], folder: Path) -> tuple[Path, ...]:
    """The jars that lie in a folder. Raises JarsMissingError when one of the artefacts is not among them; what they
    depend on is not looked for."""
    jars = tuple(sorted(folder.glob("*.jar")))
    missing = [artefact.coordinate for artefact in artefacts if not any(folder.glob(artefact.file_pattern))]
    if missing:
        raise JarsMissingError(
            f"{folder} lacks the jars of {', '.join(missing)}: `penstock pipeline jars --output {folder}` puts the"
            " connector's there, and with `--with delta` or `--with iceberg` those of a format of tables."
        )
    return jars


def _fetch(coordinates: Sequence[str], folder: Path, repository: str | None, java_home: str | None) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="spark-jars-") as work:
        program = Path(work) / "nothing.py"
        program.touch()
        try:
            result = subprocess.run(
                _command(coordinates, repository, Path(work), program),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                env=_environment(java_home),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JarsMissingError(f"Spark could not fetch the jars of {', '.join(coordinates)}: {error}") from error
        jars = [*(Path(work) / "ivy" / "jars").glob("*.jar")]
        if result.returncode != 0 or not jars:
            raise JarsMissingError(
                f"The jars of {', '.join(coordinates)} cannot be fetched{_reason(result.stderr)} "
                "Another Maven repository is named by --repository or the variable "
                f"{REPOSITORY_VARIABLE}; --jars-dir names a folder in which they are."
            )
        ready = Path(work) / "ready"
        ready.mkdir()
        for jar in jars:
            shutil.move(jar, ready / jar.name)
        try:
            ready.rename(folder)
        except OSError:
            # Another process was first; what it has is the same.
            if not folder.is_dir():
                raise


def spark_submit() -> Path:
    """pyspark's own."""
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-submit"


def _command(coordinates: Sequence[str], repository: str | None, work: Path, program: Path) -> list[str]:
    return [
        str(spark_submit()),
        *("--packages", ",".join(coordinates)),
        *("--exclude-packages", ",".join(EXCLUDED)),
        *(("--conf", f"spark.jars.ivySettings={_ivy_settings(repository, work)}") if repository else ()),
        *("--conf", f"spark.jars.ivy={work / 'ivy'}"),
        str(program),
    ]


def _ivy_settings(repository: str, work: Path) -> Path:
    """A file that names the repository before Maven Central."""
    file = work / "ivysettings.xml"
    file.write_text(_IVY_SETTINGS.format(root=quoteattr(f"{repository.rstrip('/')}/")), encoding="utf-8")
    return file


def _environment(java_home: str | None) -> dict[str, str]:
    home = {} if java_home is None else {"JAVA_HOME": java_home}
    return {**os.environ, **home, "PYSPARK_PYTHON": sys.executable}


def _reason(told: str) -> str:
    missing = sorted(set(re.findall(r"unresolved dependency: (\S+?):", told)))
    if missing:
        return f": no repository has {', '.join(one.replace('#', ':').replace(';', ':') for one in missing)}."
    lines = [line for line in told.splitlines() if "Exception" in line or "rror" in line]
    return f": {lines[0].strip()}." if lines else "."
