"""The file `voters` beside the journal: by whom the metadata in this folder are kept.

Kafka: `currentVoters` in `quorum-state`. Voters are static (KIP-853 is not built): what a majority of them has
committed may be on no disk of a majority of others.

version=1
voters=1,2,3
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ...protocol.ids import NodeId
from ...protocol.no_quorum import node_names
from ...storage.disk.files import Files
from ..raft.consensus import ConsensusFailed

VOTERS_FILE: Final = "voters"
_VERSION: Final = "version=1"
_VOTERS: Final = "voters="


def keep_voters(files: Files, directory: str, voter_ids: Collection[NodeId], *, has_metadata: bool) -> None:
    """Notes them where none are, as in a folder of an older release, or nothing was ever written that they would bind.

    Raises ConsensusFailed when the metadata are kept by others, OSError.
    """
    path = f"{directory}/{VOTERS_FILE}"
    if has_metadata and files.exists(path):
        kept_by = _decode(files.read(path), path)
        if kept_by != set(voter_ids):
            raise ConsensusFailed(
                f"The metadata in {directory} are kept by {node_names(kept_by)}, and controller.quorum.voters names "
                f"{node_names(voter_ids)}: other voters could lack what those have committed, so voters do not change."
            )
        return
    files.write_atomically(path, f"{_VERSION}\n{_VOTERS}{','.join(map(str, sorted(voter_ids)))}\n".encode())


def _decode(data: bytes, path: str) -> set[int]:
    """Raises ConsensusFailed."""
    version, _, rest = data.decode("ascii", "replace").partition("\n")
    told = rest.strip()
    try:
        if version != _VERSION or not told.startswith(_VOTERS):
            raise ValueError("it is not of version 1")
        return {int(voter_id) for voter_id in told.removeprefix(_VOTERS).split(",")}
    except ValueError as error:
        raise ConsensusFailed(f"{path} cannot be read: {error}.") from None
