"""What reading CBOR can end in, when strangers or damaged disks have written it."""

from typing import Final

import cbor2

CBOR_ERRORS: Final = (
    cbor2.CBORDecodeError,
    ValueError,
    TypeError,
    OverflowError,
    MemoryError,
    # Nesting without end, and tags that hold themselves or what has no hash, where a hash is needed.
    RuntimeError,
)
