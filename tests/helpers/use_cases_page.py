"""docs/use-cases.md as sessions of a shell: what its reader types under each heading, and what is printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "use-cases.md"
# Needs Spark; tests/pipeline follows it.
STREAM_PROCESSING: Final = "Stream processing"
SESSION_TIMEOUT_S: Final = 300.0
_FENCED: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """All blocks of a section, one after the other."""

    typed: str
    printed: str


def sessions() -> dict[str, Session]:
    """By heading."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        blocks = _FENCED.findall(text)
        assert {language for language, _ in blocks} <= {"sh", "text"}, f"{heading}: a block that is not executed"
        typed, printed = ("".join(block for kind, block in blocks if kind == wanted) for wanted in ("sh", "text"))
        if typed:
            found[heading] = Session(typed=typed, printed=printed)
    return found


def environment(bootstrap: str, programs: Path) -> dict[str, str]:
    """Of a reader who has installed the package and started a cluster."""
    programs.mkdir(exist_ok=True)
    for name, arguments in (("penstock", "-P -m penstock"), ("python", "-P")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        program.chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap,
    }


def follow(session: Session, folder: Path, variables: dict[str, str]) -> None:
    """Types it all; AssertionError when a line fails, or prints something else than the page has."""
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", session.typed],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, said = shell.communicate(timeout=SESSION_TIMEOUT_S)
    finally:
        # What it left running, and itself when it did not end.
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    assert shell.returncode == 0, printed + said
    assert printed == session.printed, said
