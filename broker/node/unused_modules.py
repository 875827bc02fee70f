"""What libraries load where it is installed, and a node has no use for."""

from __future__ import annotations

import sys
from typing import Final

_UNUSED: Final = (
    # kio, for the sake of its own users' tests: a third of a second and 15 MiB. It is there where this is developed.
    "hypothesis",
    # pysyncobj, which could encrypt by it; connections of the quorum have TLS.
    "cryptography.fernet",
)


def leave_out() -> None:
    """Of this process, from now on."""
    for module in _UNUSED:
        sys.modules.setdefault(module, None)  # type: ignore[arg-type]
