"""Compiles the few classes of Java that suites are run with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.local.apache_kafka.jars import KafkaJars

from .suite import SuiteUnavailableError

COMPILE_TIMEOUT_S: Final = 120.0


def compile_java(jars: KafkaJars, sources: Sequence[Path], classes: Path) -> None:
    """Writes the classes into that folder. Raises SuiteUnavailableError."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise SuiteUnavailableError("it is compiled with javac (Debian: apt-get install default-jdk-headless)")
    result = subprocess.run(
        [compiler, "-nowarn", "-d", str(classes), "-cp", jars.classpath, *map(str, sources)],
        capture_output=True,
        text=True,
        timeout=COMPILE_TIMEOUT_S,
        check=False,
    )
    if result.returncode != 0:
        raise SuiteUnavailableError(f"what it is run with does not compile: {result.stderr[-2000:]}")
