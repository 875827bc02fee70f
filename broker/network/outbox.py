"""The answers of one connection: slots in request order, handed to the transport as it has room."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Literal

from .file_sender import FileSender
from .request import AnswerPart, CloseConnection, FileSlice, Request, TimedRequest
from .rules.answer_memory import AnswerMemory

WRITE_BUFFER_BYTES = 256 * 1024
"""Bytes in the transport above which nothing more is given to it."""
TURN_BYTES = 1024 * 1024
"""Of files, after which other connections have their turn, however fast this one's reader is."""
SMALL_READ_COST = 4096
"""What a read counts for at least, or a thousand tiny slices would be one turn."""
DIRECT_BYTES = 64 * 1024
"""Of a slice, from which on it is sent without being read: below, the system calls that takes cost more than a copy."""


class Outbox:
    """Sends what is filled at the head of `slots`, and nothing behind a slot that is not.

    File slices are read only here: when they have reached the head and the transport has room. First without waiting;
    what is not in the page cache is read in the executor, and sending pauses until it is there. Large slices in the
    page cache go into the socket directly, while the transport has nothing left to send; when the socket is full,
    sending pauses until it has room.
    """

    __slots__ = (
        "_abort",
        "_charged_bytes",
        "_close",
        "_is_blocked",
        "_is_finished",
        "_is_paused",
        "_is_reading",
        "_is_yielding",
        "_loop",
        "_memory",
        "_offset",
        "_on_sent",
        "_parts",
        "_piece_bytes",
        "_sender",
        "_transport",
        "sent_bytes",
        "slots",
        "timed",
        "unsent_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        memory: AnswerMemory,
        close: Callable[[str], None],
        abort: Callable[[str], None],
        on_sent: Callable[[], None],
    ) -> None:
        """`close` ends the connection after what was written; `abort` at once, for a response that cannot be finished.

        `on_sent` is called when something was sent that no call of `send` or `resume` had asked for.
        """
        self._loop = loop
        self._transport = transport
        self._memory = memory
        self._charged_bytes = 0
        """To `memory`, while the transport takes nothing more."""
        self._piece_bytes = WRITE_BUFFER_BYTES
        self._close = close
        self._abort = abort
        self._on_sent = on_sent
        self.slots: deque[Request] = deque()
        self.timed: deque[TimedRequest] = deque()
        """Of those that are, or were a moment ago, in slots."""
        self.unsent_bytes = 0
        """Of answers that wait in slots; slices count nothing, because they hold no memory."""
        self.sent_bytes = 0
        self._parts: deque[AnswerPart] = deque()
        self._offset = 0
        self._is_paused = False
        self._is_blocked = False
        self._is_reading = False
        self._is_yielding = False
        self._is_finished = False
        # False: not tried yet.
        self._sender: FileSender | Literal[False] | None = False
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    @property
    def is_empty(self) -> bool:
        return not self.slots and not self._parts

    def pause(self) -> None:
        self._is_paused = True
        self._charge(self.unsent_bytes + self._transport.get_write_buffer_size())

    def resume(self) -> None:
        self._is_paused = False
        self._charge(0)
        self.send()

    def send(self) -> None:
        """Sends what can be sent now."""
        if self._is_paused or self._is_blocked or self._is_reading or self._is_yielding or self._is_finished:
            if (self._is_paused or self._is_blocked) and not self._is_finished:
                self._charge(self.unsent_bytes + self._transport.get_write_buffer_size())
            return
        ready: list[bytes | bytearray] = []
        ready_bytes = 0
        slots = self.slots
        while self._parts or slots:
            if self._parts:
                if not self._send_parts(ready):
                    return
                ready_bytes = 0
                continue
            answer = slots[0].answer
            if answer is None:
                break
            slots.popleft()
            if isinstance(answer, bytes):
                self.unsent_bytes -= len(answer)
                ready.append(answer)
                ready_bytes += len(answer)
                if ready_bytes >= WRITE_BUFFER_BYTES:
                    self._write(ready)
                    ready_bytes = 0
                    if not self._has_room():
                        return
            elif isinstance(answer, CloseConnection):
                self._write(ready)
                self._is_finished = True
                self._close(answer.reason)
                return
            else:
                for part in answer:
                    if isinstance(part, bytes):
                        self.unsent_bytes -= len(part)
                    self._parts.append(part)
        self._write(ready)
        if self.timed:
            self._note_sent()

    def clear(self) -> list[Request]:
        """The connection is lost: nothing is sent any more. Returns the slots that were left."""
        self._is_finished = True
        self._charge(0)
        if self._sender:
            self._sender.close()
        self._sender = None
        left = list(self.slots)
        self.slots.clear()
        self.timed.clear()
        self._parts.clear()
        return left

    def _note_sent(self) -> None:
        timed = self.timed
        while timed and timed[0] not in self.slots:
            timed.popleft().timer.on_sent()

    def _send_parts(self, ready: list[bytes | bytearray]) -> bool:
        """Sends the parts of one answer, behind `ready`; False when it has to stop on the way."""
        parts = self._parts
        piece_bytes = self._memory.piece_bytes
        if piece_bytes != self._piece_bytes:
            self._piece_bytes = piece_bytes
            self._transport.set_write_buffer_limits(high=piece_bytes)
        turn_cost = 0
        ready_bytes = 0
        while parts:
            part = parts[0]
            if isinstance(part, bytes):
                ready.append(part)
                parts.popleft()
                continue
            size_bytes = min(piece_bytes, part.size - self._offset)
            if size_bytes > 0:
                if ready_bytes >= piece_bytes or turn_cost >= TURN_BYTES:
                    self._write(ready)
                    ready_bytes = 0
                    if not self._has_room():
                        return False
                if turn_cost >= TURN_BYTES:
                    self._is_yielding = True
                    self._loop.call_soon(self._on_turn)
                    return False
                try:
                    sent_bytes = self._send_directly(part, ready) if size_bytes >= DIRECT_BYTES else None
                    if sent_bytes is not None:
                        ready_bytes = 0
                        turn_cost += sent_bytes
                        if sent_bytes == 0:
                            return False
                        continue
                    piece = part.read_nowait(self._offset, size_bytes)
                except ConnectionError:
                    # The peer closed the connection: no log line, as when the transport notices it.
                    self._is_finished = True
                    self._transport.abort()
                    return False
                except (OSError, EOFError) as error:
                    # Not raised: the caller is often another connection, whose append completed this answer.
                    self._abort(f"a part of the response could not be sent: {error}")
                    return False
                if not piece:
                    self._write(ready)
                    self._read_waiting(part, size_bytes)
                    return False
                ready.append(piece)
                ready_bytes += len(piece)
                turn_cost += max(len(piece), SMALL_READ_COST)
                self._offset += len(piece)
            if self._offset == part.size:
                parts.popleft()
                self._offset = 0
        return True

    def _send_directly(self, part: FileSlice, ready: list[bytes | bytearray]) -> int | None:
        """Sends `ready` and then of the slice what the socket takes; 0 when it is full, and sending goes on later.

        None when this piece is to be read and written instead. Raises OSError, EOFError.
        """
        sender = self._sender
        if sender is False:
            sender = self._sender = FileSender.beside(self._loop, self._transport)
        if sender is None or self._transport.get_write_buffer_size() or self._transport.is_closing():
            return None
        if ready:
            taken_bytes = sender.send(ready)
            self.sent_bytes += taken_bytes
            if taken_bytes < sum(map(len, ready)):
                ready[:] = [b"".join(ready)[taken_bytes:]]
                return None
            ready.clear()
        count = sender.send_file(part, self._offset, min(TURN_BYTES, part.size - self._offset))
        if count == 0:
            self._is_blocked = True
            self._charge(self.unsent_bytes)
            sender.when_writable(self._on_writable)
        elif count is not None:
            self.sent_bytes += count
            self._offset += count
            if self._offset == part.size:
                self._parts.popleft()
                self._offset = 0
        return count

    def _on_writable(self) -> None:
        self._is_blocked = False
        self._charge(0)
        if not self._is_finished:
            self.send()
            self._on_sent()

    def _charge(self, held_bytes: int) -> None:
        if held_bytes != self._charged_bytes:
            self._memory.change(held_bytes - self._charged_bytes)
            self._charged_bytes = held_bytes

    def _has_room(self) -> bool:
        return not self._is_paused

    def _write(self, ready: list[bytes | bytearray]) -> None:
        if not ready:
            return
        if len(ready) == 1:
            self.sent_bytes += len(ready[0])
            self._transport.write(ready[0])
        else:
            self.sent_bytes += sum(map(len, ready))
            self._transport.writelines(ready)
        ready.clear()

    def _on_turn(self) -> None:
        self._is_yielding = False
        if not self._is_finished:
            self.send()
            self._on_sent()

    def _read_waiting(self, part: FileSlice, size_bytes: int) -> None:
        try:
            reading = self._loop.run_in_executor(None, part.read, self._offset, size_bytes)
        except RuntimeError as error:
            # No thread could be started, and the caller is often another connection.
            self._abort(f"a part of the response could not be read: {error}")
            return
        self._is_reading = True
        reading.add_done_callback(self._on_read)

    def _on_read(self, future: asyncio.Future[bytes]) -> None:
        self._is_reading = False
        if future.cancelled() or self._is_finished:
            return
        error = future.exception()
        if error is not None:
            self._abort(f"a part of the response could not be read: {error}")
            return
        piece = future.result()
        if not piece:
            self._abort("a part of the response is no longer in its file")
            return
        self._offset += len(piece)
        self._write([piece])
        part = self._parts[0]
        assert not isinstance(part, bytes)
        if self._offset == part.size:
            self._parts.popleft()
            self._offset = 0
        self.send()
        self._on_sent()
