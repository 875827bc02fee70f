"""The place of a cluster event, by which a reader resumes at any node."""

from typing import Final, NamedTuple

LAST_NUMBER: Final = 2**31 - 1


class EventId(NamedTuple):
    """The same on every node: the offset of the event's entry in the metadata log, and its number in that.

    Ids rise. A transaction of entries counts as its last one.
    """

    offset: int
    number: int

    def __str__(self) -> str:
        return f"{self.offset}.{self.number}"

    @staticmethod
    def parse(text: str) -> "EventId":
        """Read what `str` made. Raises ValueError."""
        offset, separator, number = text.partition(".")
        if not (separator and offset.removeprefix("-").isdecimal() and number.isdecimal()):
            raise ValueError(f"{text!r} is no id of an event, which is like 123.0")
        return EventId(int(offset), int(number))
