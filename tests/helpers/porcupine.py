"""Porcupine, the checker of linearizability in Go, as a judge of the same histories.

Source: https://github.com/anishathalye/porcupine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from missing_tools import unavailable

from penstock.chaos.checkers.linearizability import Step
from penstock.chaos.checkers.object_models import Action
from penstock.client.cached_programs import cache_folder

_BUILD_TIMEOUT_S: Final = 600
_JUDGE_TIMEOUT_S: Final = 300
_SOURCES: Final = Path(__file__).parent / "porcupine_judge"


@cache
def _program() -> Path:
    """Built once for each content of its sources."""
    files = sorted(_SOURCES.iterdir())
    digest = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    program = cache_folder() / f"porcupine-{digest}"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            unavailable("Go is not installed (apt-get install golang-go), which builds Porcupine")
        program.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=program.parent, prefix="porcupine-build-") as work:
            made = Path(work) / program.name
            built = subprocess.run(
                [go, "build", "-mod=readonly", "-buildvcs=false", "-o", made, "."],
                cwd=_SOURCES, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False,
            )  # fmt: skip
            if built.returncode:
                unavailable(f"Porcupine cannot be built: {built.stderr.strip()[-300:]}")
            # Renamed when whole: a build that is killed, or another at the same time, leaves no part of a program.
            made.rename(program)
    return program


def judge_with_porcupine(histories: Sequence[tuple[str, Sequence[Step]]]) -> list[bool]:
    """Whether each history, of the model of that name, is linearizable."""
    told = json.dumps([{"Model": name, "Steps": [_told(step) for step in steps]} for name, steps in histories])
    judged = subprocess.run(
        [_program()], input=told, capture_output=True, text=True, check=True, timeout=_JUDGE_TIMEOUT_S
    )
    answers: list[bool] = json.loads(judged.stdout)
    return answers


def _told(step: Step) -> dict[str, object]:
    assert isinstance(step.action, Action)
    kind, argument, value = step.action
    return {"Invoked": step.invoked, "Returned": step.returned, "Kind": kind, "Argument": argument, "Value": value}
