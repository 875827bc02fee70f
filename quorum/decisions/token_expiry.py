"""The end of delegation tokens whose time is over (KIP-48)."""

from collections.abc import Iterator
from typing import Final

from ..metadata.image import MetadataImage
from ..metadata.security_records import RemoveDelegationTokenRecord
from ..permissions.tokens import is_expired
from .context import ControllerResult, DecisionContext

EXPIRED_MAX: Final = 1_000
"""Removed in one decision."""


def remove_expired_tokens(image: MetadataImage, _request: None, context: DecisionContext) -> ControllerResult[bool]:
    """Remove tokens that have expired; the answer is whether there may be more of them."""
    expired = list(_expired(image, context.wall_ms))[:EXPIRED_MAX]
    return ControllerResult(
        records=tuple(RemoveDelegationTokenRecord(token_id=token_id) for token_id in expired),
        response=len(expired) == EXPIRED_MAX,
    )


def _expired(image: MetadataImage, now_ms: int) -> Iterator[str]:
    return (token_id for token_id, token in image.delegation_tokens.items() if is_expired(token, now_ms))
