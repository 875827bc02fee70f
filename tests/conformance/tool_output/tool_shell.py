"""One Java process that runs Apache Kafka's tools in turn: each start of Java would cost a second or two."""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from penstock.local.apache_kafka.jars import KafkaJars
from penstock.local.apache_kafka.tools import MAIN_CLASSES
from penstock.protocol.structs import replace

from ..java_compiler import compile_java
from .transcript import Command

SOURCE: Final = Path(__file__).parent / "shell" / "ToolShell.java"
COMMAND_TIMEOUT_S: Final = 90.0


class ToolShellError(Exception):
    """A tool did not end in time, or ended Java by itself; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one tool printed."""

    stdout: str
    stderr: str
    exit_status: int


class ToolShell:
    """Runs in a folder, where the tools find files by their names. Not safe to share between threads."""

    def __init__(self, jars: KafkaJars, folder: Path) -> None:
        """Compiles the shell; `run` starts it. Raises SuiteUnavailableError."""
        classes = folder / "classes"
        compile_java(jars, [SOURCE], classes)
        self._jars = replace(jars, in_front=(classes,))
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, command: Command, arguments: list[str]) -> Output:
        """What the command's tool prints, given these arguments. Raises ToolShellError."""
        process = self._process or self._start()
        request = {"main": MAIN_CLASSES[command.tool], "arguments": arguments, "input": command.stdin}
        assert process.stdin is not None, "a pipe was asked for"
        assert process.stdout is not None, "a pipe was asked for"
        deadline = threading.Timer(COMMAND_TIMEOUT_S, process.kill)
        deadline.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            deadline.cancel()
        if not line:
            self._end()
            raise ToolShellError(f"no end within {COMMAND_TIMEOUT_S:.0f} s, or the end of Java itself: {command.text}")
        answer = json.loads(line)
        return Output(stdout=answer["out"], stderr=answer["err"], exit_status=answer["exit"])

    def _start(self) -> subprocess.Popen[str]:
        with (self._folder / "java.log").open("ab") as log:
            self._process = subprocess.Popen(
                # What tools log is a copy of what they print, with times.
                self._jars.command("ToolShell", log_level="OFF"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                encoding="utf-8",
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:
                self._process = None
