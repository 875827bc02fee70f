"""How deep a log was cut since a copy of it on its way to another log directory was last made to fit (KIP-113)."""

from .config import MAX_INT64


class LowestCut:
    """The log's cuts lower it; `LogCopier` raises it again when the copy has followed.

    Below `offset` every batch that was copied is still the log's. At and above it there may be others by now. It serves
    one copy: a log has no second one at a time.
    """

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = MAX_INT64

    @property
    def offset(self) -> int:
        """The lowest end that a cut has left; `MAX_INT64` when there was none."""
        return self._offset

    @property
    def has_been(self) -> bool:
        return self._offset != MAX_INT64

    def note(self, end_offset: int) -> None:
        """The log was cut, and ends at `end_offset`; 0 for one that begins anew."""
        self._offset = min(self._offset, end_offset)

    def followed(self, end_offset: int) -> None:
        """The copy was cut at `end_offset`, as this was before. A deeper cut that came meanwhile stays noted."""
        if end_offset <= self._offset:
            self._offset = MAX_INT64
