"""Client programs in Java: compiled once against Apache Kafka's client, into the cache."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from ...client.cached_programs import BuildFailedError, build_once
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

    def command(made: Path) -> list[str]:
        compiler = shutil.which("javac")
        if compiler is None:
            raise ClusterError(
                "the client in Java is compiled with javac (Debian: apt-get install default-jdk-headless)"
            )
        return [compiler, "-nowarn", "-d", str(made), "-cp", jars.classpath, str(source)]

    try:
        classes = build_once(
            f"client-{source.stem}",
            (source.read_bytes(), jars.directory.name.encode()),
            command,
            folder=source.parent,
            timeout_s=_COMPILE_TIMEOUT_S,
        )
    except BuildFailedError as error:
        raise ClusterError(f"{source.name} does not compile:\n{error}") from error
    return replace(jars, in_front=(classes,)).command(source.stem)
