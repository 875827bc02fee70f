"""What a connection keeps of what it received: frames that wait to begin, and the one that is unfinished."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from .frame_buffers import FrameBuffers
from .request_memory import RequestMemory

CAPACITY_MIN = 1024
"""Growing from less would take several steps to hold even a small request."""
INT32 = Struct(">i")


class HeldFrames:
    """`view[start:filled]` begins with a frame; `view` is None while nothing is kept.

    Room for an unfinished frame grows with the bytes that arrive, never by what the frame announces, and never past its
    end: the next frame begins in the buffer that all connections share. All of it is charged to `memory`. In one of
    `buffers` it grows where it is, without being copied.
    """

    __slots__ = (
        "_buffer",
        "_buffers",
        "_charged_bytes",
        "_memory",
        "_on_room",
        "filled",
        "is_waiting",
        "start",
        "view",
    )

    def __init__(self, memory: RequestMemory, buffers: FrameBuffers, on_room: Callable[[], None]) -> None:
        """`on_room` is called when room that was refused has been found: reading may go on."""
        self._memory = memory
        self._buffers = buffers
        self._buffer: memoryview | None = None
        """All of what `view` is the beginning of, where that is one of `buffers`."""
        self._on_room = on_room
        self._charged_bytes = 0
        self.view: memoryview | None = None
        self.start = 0
        self.filled = 0
        self.is_waiting = False
        """For memory: nothing more can be received until `on_room`."""

    @property
    def missing_bytes(self) -> int:
        """Of the unfinished frame, that are still to come; 0 while its size is not known, or no frame is unfinished."""
        kept_bytes = self.filled - self.start
        if self.view is None or kept_bytes < INT32.size:
            return 0
        frame_bytes: int = INT32.size + INT32.unpack_from(self.view, self.start)[0]
        return max(0, frame_bytes - kept_bytes)

    def keep(self, view: memoryview, start: int, end: int, *, is_blocked: bool) -> None:
        """Keeps `view[start:end]`, which begins with a frame that may not begin yet (`is_blocked`) or is unfinished."""
        if start == end:
            self.drop()
        elif view is self.view and is_blocked:
            self.start = start
        elif view is self.view and start == 0:
            if end == len(view):
                self._grow(view)
        else:
            rest = view[start:end]
            self.drop()
            self.filled = self._charged_bytes = len(rest)
            self._memory.take(len(rest))
            if is_blocked:
                self._replace(rest, len(rest))
            else:
                self._grow(rest)

    def drop(self) -> None:
        """Keeps nothing any more, and waits for nothing."""
        if self.view is not None:
            self.view = self._buffer = None
            self.start = self.filled = 0
            self.is_waiting = False
            charged_bytes, self._charged_bytes = self._charged_bytes, 0
            self._memory.give_back(self, charged_bytes)

    def on_memory(self) -> None:
        """From the memory: what was refused is charged now."""
        self.is_waiting = False
        assert self.view is not None, "who drops everything waits no more"
        self._enlarge(self.view)
        self._on_room()

    def _grow(self, content: memoryview) -> None:
        """Makes room behind `content`, which fills what it is charged for, or keeps it as it is and waits."""
        if self._memory.try_take(self, self._wanted_capacity(content) - len(content)):
            self._enlarge(content)
        else:
            self.is_waiting = True
            if content is not self.view:
                self._replace(content, len(content))

    def _enlarge(self, content: memoryview) -> None:
        capacity = self._wanted_capacity(content)
        self._charged_bytes += capacity - len(content)
        self._replace(content, capacity)

    def _wanted_capacity(self, content: memoryview) -> int:
        if self.filled < INT32.size:
            return INT32.size
        frame_bytes: int = INT32.size + INT32.unpack_from(content, 0)[0]
        return min(frame_bytes, max(2 * self.filled, CAPACITY_MIN))

    def _replace(self, content: memoryview, capacity: int) -> None:
        buffer = self._buffer
        if buffer is not None and content is self.view and capacity <= len(buffer):
            self.view = buffer[:capacity]
            return
        buffer = self._buffer = self._buffers.take(capacity)
        view = memoryview(bytearray(capacity)) if buffer is None else buffer[:capacity]
        view[: len(content)] = content
        self.view = view
