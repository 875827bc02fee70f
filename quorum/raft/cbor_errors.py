"""The exceptions of decoding CBOR from unauthenticated peers and damaged disks."""

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
