"""Client programs in Java: compiled once against Apache Kafka's client, into the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from ...client.cached_programs import cache_folder
from ...protocol.structs import replace
from ..errors import ClusterError
from .jars import JarsUnavailableError, install

_COMPILE_TIMEOUT_S: Final = 120.0


def java_command(source: Path) -> list[str]:
    """The command line, without its options, that runs the class of this file, which bears its name.

    Raises ClusterError where Java, its compiler or the client cannot be had; it says how to get them.
    """
    try:
        jars = install()
    except JarsUnavailableError as missing:
        raise ClusterError(f"the client in Java cannot run: {missing}") from missing
    program = source.stem
    stamp = hashlib.sha256(source.read_bytes() + jars.directory.name.encode()).hexdigest()[:16]
    classes = cache_folder() / f"client-{program}-{stamp}"
    if not classes.is_dir():
        _compile(source, jars.classpath, classes)
    return replace(jars, in_front=(classes,)).command(program)


def _compile(source: Path, classpath: str, classes: Path) -> None:
    compiler = shutil.which("javac")
    if compiler is None:
        raise ClusterError("the client in Java is compiled with javac (Debian: apt-get install default-jdk-headless)")
    classes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes.parent, prefix="client-") as work:
        made = Path(work) / "classes"
        made.mkdir()
        result = subprocess.run(
            [compiler, "-nowarn", "-d", str(made), "-cp", classpath, str(source)],
            capture_output=True,
            text=True,
            timeout=_COMPILE_TIMEOUT_S,
            check=False,
        )
        if result.returncode != 0:
            raise ClusterError(f"{source.name} does not compile:\n{result.stderr[-2000:]}")
        try:
            # Renamed when whole: a second process that compiles at the same time finds all classes or none.
            made.rename(classes)
        except OSError:
            if not classes.is_dir():
                raise
