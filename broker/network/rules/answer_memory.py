"""How much memory the answers hold that their clients do not read, over all connections."""

from __future__ import annotations

ANSWER_BYTES_MAX = 128 * 1024 * 1024
"""Of all stalled connections together; above it each is allowed the smaller of the bounds below."""
UNSENT_BYTES_MAX = 16 * 1024 * 1024
"""Of one connection's answers that wait for a slow reader; above that it begins nothing more."""
SCARCE_UNSENT_BYTES_MAX = 64 * 1024
PIECE_BYTES = 256 * 1024
"""Of a file, read and written at a time: large enough to pay for its system calls, small enough to hold for a slow
reader."""
SCARCE_PIECE_BYTES = 16 * 1024


class AnswerMemory:
    """A sum over the connections that wait for their client to read, and the bounds that follow from it.

    Five hundred clients that ask for fetches and read none of them would else hold half a MiB each, and a client that
    asks much and reads nothing 16 MiB. What is held when the sum is reached stays; later answers hold little.
    """

    __slots__ = ("held_bytes", "limit_bytes", "piece_bytes", "unsent_bytes_max")

    def __init__(self, limit_bytes: int = ANSWER_BYTES_MAX) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.unsent_bytes_max = UNSENT_BYTES_MAX
        self.piece_bytes = PIECE_BYTES

    def change(self, by_bytes: int) -> None:
        self.held_bytes += by_bytes
        assert self.held_bytes >= 0, "answer memory given back twice"
        is_scarce = self.held_bytes >= self.limit_bytes
        self.unsent_bytes_max = SCARCE_UNSENT_BYTES_MAX if is_scarce else UNSENT_BYTES_MAX
        self.piece_bytes = SCARCE_PIECE_BYTES if is_scarce else PIECE_BYTES
