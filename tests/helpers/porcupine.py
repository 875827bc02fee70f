"""Porcupine, the checker of linearizability in Go, as a judge of the same histories.

Source: https://github.com/anishathalye/porcupine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from missing_tools import unavailable

from penstock.chaos.checkers.linearizability import Step
from penstock.chaos.checkers.object_models import Action
from penstock.client.cached_programs import BuildFailedError, build_once

_BUILD_TIMEOUT_S: Final = 600
_JUDGE_TIMEOUT_S: Final = 300
_SOURCES: Final = Path(__file__).parent / "porcupine_judge"


@cache
def _program() -> Path:
    """Built once for each content of its sources."""

    def command(made: Path) -> list[str]:
        go = shutil.which("go")
        if go is None:
            unavailable("Go is not installed (apt-get install golang-go), which builds Porcupine")
        return [go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(made), "."]

    try:
        return build_once(
            "porcupine",
            (file.read_bytes() for file in sorted(_SOURCES.iterdir())),
            command,
            folder=_SOURCES,
            timeout_s=_BUILD_TIMEOUT_S,
        )
    except BuildFailedError as error:
        unavailable(f"Porcupine cannot be built: {str(error).strip()[-300:]}")


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
