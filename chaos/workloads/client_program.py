"""What all client programs share: their options, how they are told to finish, and the life of a client.

A program does one operation after the other. A line on its standard input directs it:

    stop     it writes no more, and says `stopped` on its standard output
    drain    (stop, and) it reads to the ends that partitions have now, as final reads, and ends

Without the line it drains by itself at `--until`. The end of its standard input means that what started it is gone: it
ends at once. Status 3: it did not come to the ends in time.
"""

from __future__ import annotations

import os
import select
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, cast

import click
from msgspec import Struct

from ...client import clock
from ...client.options import Command, with_options
from ..histories.client_history import ClientHistory
from .aiokafka_session import AiokafkaSession
from .confluent_session import ConfluentSession
from .outcomes import NotDoneError, UnknownOutcomeError
from .session import Life, Session, SessionOptions, key_of

STOPPED: Final = "stopped"
NOT_CAUGHT_UP: Final = 3
# Of an operation that finds nothing to do, and of a session that did not open.
_PAUSE_S: Final = 0.2

Word = Literal["stop", "drain", "abandon"]


class ProgramOptions(Struct, frozen=True, kw_only=True):
    bootstrap: str
    # What the names of its topics begin with; its keys are the partitions of this one.
    topic: str
    partitions: int
    history: Path
    # The number of its first life; a life more is `stride` further.
    process: int
    stride: int
    start_ns: int
    seed: int
    client: Literal["confluent", "aiokafka"]
    # By itself, so many seconds after `start_ns`.
    until: float
    # Between two operations, on average.
    pause_ms: float

    @property
    def keys(self) -> list[str]:
        return [key_of(self.topic, number) for number in range(self.partitions)]


def program_options(function: Command) -> Command:
    """The options of `ProgramOptions`, for a click command."""
    return with_options(
        function,
        click.option("--bootstrap", required=True),
        click.option("--topic", required=True),
        click.option("--partitions", type=click.IntRange(min=1), default=1, show_default=True),
        click.option("--history", type=click.Path(path_type=Path, dir_okay=False), required=True),
        click.option("--process", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--stride", type=click.IntRange(min=1), default=1, show_default=True),
        click.option("--start-ns", type=int, default=0, help="Start of the run by the monotonic clock."),
        click.option("--seed", type=int, default=0, show_default=True),
        click.option("--client", type=click.Choice(["confluent", "aiokafka"]), default="confluent"),
        click.option("--until", type=float, default=3600.0, show_default=True, help="Seconds since the start."),
        click.option("--pause-ms", type=float, default=20.0, show_default=True, help="Between operations."),
    )


class Instructions:
    """What the program is told by `descriptor`; looked at between operations."""

    def __init__(self, descriptor: int, *, until_ns: int) -> None:
        self._descriptor = descriptor
        self._until_ns = until_ns
        self._unread = b""
        self._word: Word | None = None

    def word(self) -> Word | None:
        """The last one; None while it is to go on."""
        self._read(0.0)
        if self._word is None and clock.monotonic_ns() >= self._until_ns:
            self._word = "drain"
        return self._word

    def wait_drain(self) -> bool:
        """Until it is told to drain. Whether it is, and not to abandon everything."""
        while (word := self.word()) == "stop":
            self._read(_PAUSE_S)
        return word == "drain"

    def _read(self, timeout_s: float) -> None:
        if self._word in ("drain", "abandon") or not select.select([self._descriptor], [], [], timeout_s)[0]:
            return
        data = os.read(self._descriptor, 4096)
        if not data:
            self._word = "abandon"
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            if line == b"stop":
                self._word = "stop"
            elif line == b"drain":
                self._word = "drain"


class Client(ABC):
    """One client: a session after the other, each of which is a process of the history."""

    def __init__(self, options: ProgramOptions, history: ClientHistory, instructions: Instructions) -> None:
        self.options = options
        self.history = history
        self.instructions = instructions
        self.random = Random(options.seed * 1_000 + options.process)
        self._life: Life | None = None
        self._count = 0

    @abstractmethod
    def session_options(self) -> SessionOptions: ...

    @abstractmethod
    def began(self) -> None:
        """A session is there; what it reads is to be said. Raises NotDoneError where the session is of no use."""

    @abstractmethod
    def step(self) -> None:
        """One operation."""

    def finish(self) -> None:  # noqa: B027
        """What is left to do between being told to stop and having stopped."""

    @abstractmethod
    def final(self) -> bool:
        """After everything has healed; whether it saw all that there is."""

    @property
    def life(self) -> Life:
        assert self._life is not None, "operations are done while a session is there"
        return self._life

    @property
    def session(self) -> Session:
        return cast(Session, self.life)

    @property
    def has_session(self) -> bool:
        return self._life is not None

    def run(self) -> bool:
        """Until it is told to end; whether the final reads saw all."""
        while self.instructions.word() is None:
            if self.has_session:
                self.step()
                self._rest()
            else:
                self.enter(is_wanted=lambda: self.instructions.word() is None)
        self.finish()
        self.close()
        sys.stdout.write(STOPPED + "\n")
        sys.stdout.flush()
        return self.final() if self.instructions.wait_drain() else True

    def open(self, options: SessionOptions, *, is_wanted: Callable[[], bool]) -> bool:
        """Tries as long as it is wanted; whether there is a session then."""
        while is_wanted():
            try:
                self._life = self.new_life(options)
            except NotDoneError:
                clock.pause(_PAUSE_S)
            else:
                return True
        return False

    def enter(self, *, is_wanted: Callable[[], bool]) -> bool:
        """A session that has begun, tried for as long as it is wanted; whether there is one then."""
        while self.open(self.session_options(), is_wanted=is_wanted):
            try:
                self.began()
            except NotDoneError:
                self.close()
                clock.pause(_PAUSE_S)
            else:
                break
        return self.has_session

    def new_life(self, options: SessionOptions) -> Life:
        """Raises NotDoneError."""
        return (AiokafkaSession if self.options.client == "aiokafka" else ConfluentSession)(options)

    def close(self) -> None:
        """The client is gone; the next session is another process."""
        if self._life is not None:
            self._life.close()
            self._life = None
            self.history.next_life()

    def crash(self) -> None:
        self.history.invoke("crash", None)
        self.history.info("crashed")
        self.close()

    def perform(self, f: str, value: Any, call: Callable[[], Any], *, final: bool = False) -> Any:
        """One operation with its outcome: `ok` with what `call` returned, or with what was asked where that is None.

        Returns what it returned.
        """
        self.history.invoke(f, value, final=final)
        try:
            done = call()
        except NotDoneError as error:
            self.history.fail(str(error))
            if error.is_broken:
                self.close()
        except UnknownOutcomeError as error:
            self.history.info(str(error), error.value)
            # Its process never appears again.
            self.close()
        else:
            self.history.ok(value if done is None else done)
            return done
        return None

    def _rest(self) -> None:
        if self._life is not None and self.options.pause_ms:
            self._life.rest(self.random.expovariate(1000.0 / self.options.pause_ms))

    def draw_value(self) -> int:
        """One that no other client draws, and greater than those before."""
        self._count += 1
        return self._count * self.options.stride + self.options.process


def run_client(options: ProgramOptions, make: Callable[[ProgramOptions, ClientHistory, Instructions], Client]) -> None:
    """The program. Raises SystemExit with the status."""
    until_ns = options.start_ns + int(options.until * 1e9)
    with ClientHistory(
        options.history, process=options.process, stride=options.stride, start_ns=options.start_ns
    ) as history:
        client = make(options, history, Instructions(sys.stdin.fileno(), until_ns=until_ns))
        try:
            caught_up = client.run()
        finally:
            client.close()
    if not caught_up:
        click.echo("the ends of all partitions were not reached in time", err=True)
        raise SystemExit(NOT_CAUGHT_UP)
