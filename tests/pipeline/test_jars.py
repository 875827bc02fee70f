"""Jars from a Maven repository that the user names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.pipeline.connector.artefacts import Artefact, artefacts
from penstock.pipeline.connector.java import java_home

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
</project>"""


def test_jars_come_from_the_repository_that_is_named(tmp_path: Path) -> None:
    """One in a folder, whose connector says that it needs nothing: all others would bring a dozen jars."""
    pyspark = pytest.importorskip("pyspark")
    (connector,) = artefacts((), pyspark.__version__)
    home = tmp_path / "home"
    home.mkdir()
    fetched = subprocess.run(
        [
            *(sys.executable, "-m", "penstock", "pipeline", "jars", "--output", str(tmp_path / "jars")),
            *("--repository", _repository_of(connector, tmp_path / "repository").as_uri()),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "XDG_CACHE_HOME": str(home / ".cache"),
            # What this machine has fetched before is in its user's home.
            "JDK_JAVA_OPTIONS": f"-Duser.home={home}",
            **({"JAVA_HOME": found} if (found := java_home()) else {}),
        },
    )
    assert fetched.returncode == 0, fetched.stderr
    (jar,) = (tmp_path / "jars").iterdir()
    assert fetched.stdout == f"{jar}\n"
    assert jar.read_bytes() == b"the one of the repository"


def _repository_of(artefact: Artefact, folder: Path) -> Path:
    """With that artefact alone."""
    group, name, version = artefact.coordinate.split(":")
    place = folder.joinpath(*group.split("."), name, version)
    place.mkdir(parents=True)
    (place / f"{name}-{version}.pom").write_text(_POM.format(group=group, name=name, version=version))
    (place / f"{name}-{version}.jar").write_bytes(b"the one of the repository")
    return folder
