"""What an error of the disk says about the disk, and with that what must be given up. Kafka: `LogDirFailureChannel`.

    error                                     what is in doubt      what follows
    no room (ENOSPC, EDQUOT)                  nothing               the call is refused, and tried again later
    out of descriptors or memory              nothing               the same
    `ReadError`                              the bytes asked for   who asked is refused
    `ClosedError`                            nothing               the same: it came after the end
    `SyncError`                              all unsynced bytes    the log directory goes offline
    anything else, EIO of a write above all   the log directory     the log directory goes offline

A sync that failed is never tried again as if nothing had happened: the kernel may have dropped the pages, and would
report success the next time. That holds whatever it says the reason was, a full disk too.
"""

from errno import EBADF, EDQUOT, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC
from typing import Final

_NO_ROOM: Final = frozenset({ENOSPC, EDQUOT})
DESCRIPTORS_SHORT: Final = frozenset({EMFILE, ENFILE})
_SHORTAGE: Final = DESCRIPTORS_SHORT | {ENOMEM}
"""Of the process or of the system: they say nothing about any file."""
_PASSING: Final = _NO_ROOM | _SHORTAGE


class ReadError(OSError):
    """Bytes of one file cannot be read; nothing was changed, and nothing is said about other files."""


class SyncError(OSError):
    """What was written and not synced may be lost, whatever a later sync says. Its errno is EIO."""


class ClosedError(OSError):
    """The call came when what it would change was closed, or given up: nothing was changed. Its errno is EBADF."""

    def __init__(self, sentence: str) -> None:
        super().__init__(EBADF, sentence)


def failed_read(path: str, error: OSError) -> OSError:
    """A `ReadError`, unless descriptors or memory are short: then the file may be whole, and is not damaged."""
    kind = OSError if error.errno in _SHORTAGE else ReadError
    return kind(error.errno or EIO, f"{path} cannot be read: {error.strerror or error}")


def failed_sync(path: str, error: OSError) -> SyncError:
    return SyncError(EIO, f"{path} could not be synced: {error.strerror or error}")


def is_no_room(error: OSError) -> bool:
    """The call was refused as a whole for want of room, and may succeed when there is some."""
    return error.errno in _NO_ROOM


def is_shortage(error: OSError) -> bool:
    """Descriptors or memory are short, of this process or of the system: the disk is as good as before."""
    return error.errno in _SHORTAGE


def is_passing(error: OSError) -> bool:
    """The call was refused as a whole for want of room, descriptors or memory, and may succeed later."""
    return error.errno in _PASSING and not isinstance(error, ReadError | SyncError)


def leaves_directory_usable(error: OSError) -> bool:
    return isinstance(error, ReadError | ClosedError) or error.errno in _PASSING
