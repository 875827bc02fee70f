"""Bodies of `/health` and `/ready`."""

from msgspec import Struct


class Reason(Struct, kw_only=True):
    """One thing that is wrong: `kind` is for programs, `sentence` for people."""

    kind: str
    sentence: str


class Health(Struct, kw_only=True):
    """How a node is. `is_ok` is false where `reasons` is not empty."""

    node_id: int
    is_ok: bool
    state: str
    reasons: list[Reason]
