"""Transcripts: command lines of Apache Kafka's tools, and what each answers.

A line that begins with `$ ` is a command line, `| ` a line of standard output, `! ` one of standard error, `? ` an exit
status other than 0. Everything else is for readers. `@ NAME TEXT` stands before the commands that read that file.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

_COMMAND: Final = "$ "
_FILE: Final = "@ "
_ANSWERS: Final = ("|", "!", "?")
_TOOL_PREFIX: Final = "kafka-"
_READING_WORDS: Final = frozenset(
    {"--describe", "--list", "describe", "list-endpoints", "cluster-id", "describe-producers"}
)
_READING_TOOLS: Final = frozenset({"get-offsets"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command line, as it is written."""

    text: str
    tool: str
    """Without `kafka-`."""
    arguments: tuple[str, ...]
    stdin: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        r"""Of `kafka-TOOL …` or `printf 'a\nb\n' | kafka-TOOL …`; raises ValueError for any other."""
        words = shlex.split(text)
        stdin = ""
        if words[:1] == ["printf"] and words[2:3] == ["|"]:
            stdin = words[1].replace("\\n", "\n").replace("\\t", "\t")
            words = words[3:]
        if not words or not words[0].startswith(_TOOL_PREFIX):
            raise ValueError(f"a command line begins with {_TOOL_PREFIX}…, not: {text}")
        return cls(text=text, tool=words[0].removeprefix(_TOOL_PREFIX), arguments=tuple(words[1:]), stdin=stdin)

    @property
    def is_reading(self) -> bool:
        """Whether it changes nothing, and may be asked again until the brokers have heard of the change before it."""
        return self.tool in _READING_TOOLS or not _READING_WORDS.isdisjoint(self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command line with the answer that belongs to it, and the lines for readers in front of it."""

    preface: tuple[str, ...]
    command: Command
    answer: tuple[str, ...]
    """Lines with their marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """All of one file."""

    steps: tuple[Step, ...]
    rest: tuple[str, ...] = ()
    """Lines behind the last answer."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for an answer without a command, or a command line that cannot be."""
        steps: list[Step] = []
        preface: list[str] = []
        command: Command | None = None
        answer: list[str] = []

        def finish() -> None:
            nonlocal command, preface, answer
            if command is not None:
                steps.append(Step(preface=tuple(preface), command=command, answer=tuple(answer)))
                command, preface, answer = None, [], []

        for line in text.splitlines():
            if line.startswith(_COMMAND):
                finish()
                command = Command.parse(line.removeprefix(_COMMAND))
            elif line.startswith(_ANSWERS):
                if command is None:
                    raise ValueError(f"an answer without a command: {line}")
                answer.append(line)
            else:
                finish()
                preface.append(line)
        finish()
        return cls(steps=tuple(steps), rest=tuple(preface))

    def format(self, answers: Sequence[Sequence[str]]) -> str:
        """The same transcript with these answers, by step."""
        lines: list[str] = []
        for step, answer in zip(self.steps, answers, strict=True):
            lines += (*step.preface, f"{_COMMAND}{step.command.text}", *answer)
        return "".join(f"{line}\n" for line in (*lines, *self.rest))


def files_of(step: Step) -> dict[str, str]:
    """What its preface says that files hold, by name."""
    lines = (line.removeprefix(_FILE) for line in step.preface if line.startswith(_FILE))
    return {name: text for name, _, text in (line.partition(" ") for line in lines)}


def answer_lines(stdout: Sequence[str], stderr: Sequence[str], exit_status: int) -> tuple[str, ...]:
    """An answer with its marks."""
    return (
        *(f"| {line}".rstrip() for line in stdout),
        *(f"! {line}".rstrip() for line in stderr),
        *((f"? {exit_status}",) if exit_status else ()),
    )
