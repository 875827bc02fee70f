"""How the programs of this package are run, made ready where they have to be compiled."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...client.cached_programs import BuildFailedError, build_once
from ...local.apache_kafka.java_programs import java_command
from ...local.errors import ClusterError

_FOLDER: Final = Path(__file__).parent
_FRANZ_GO: Final = _FOLDER / "franz_go"
_BUILD_TIMEOUT_S: Final = 300.0


def _librdkafka() -> list[str]:
    return [sys.executable, "-P", "-m", f"{__package__}.librdkafka"]


def _java() -> list[str]:
    return java_command(_FOLDER / "ObservedClient.java")


def _franz_go() -> list[str]:
    def command(made: Path) -> list[str]:
        compiler = shutil.which("go")
        if compiler is None:
            raise ClusterError("franz-go is compiled with Go 1.23 or newer (Debian: apt-get install golang-go)")
        return [compiler, "build", "-o", str(made), "."]

    sources = sorted(one for one in _FRANZ_GO.iterdir() if one.name != "__pycache__")
    try:
        program = build_once(
            "franz-go",
            (one.read_bytes() for one in sources),
            command,
            folder=_FRANZ_GO,
            timeout_s=_BUILD_TIMEOUT_S,
        )
    except BuildFailedError as error:
        raise ClusterError(f"franz-go does not compile:\n{error}") from error
    return [str(program)]


PROGRAMS: Final[Mapping[str, Callable[[], list[str]]]] = MappingProxyType(
    {"librdkafka": _librdkafka, "java": _java, "franz-go": _franz_go}
)
"""The command line of each library, without arguments. Each raises ClusterError where this machine cannot run it."""
