"""What a local cluster leaves on disk about itself, so that another process can find, describe and stop it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from .errors import UnreadableRecordError

FILE_NAME: Final = "cluster.json"
_FORMAT: Final = 1


class NodeRecord(Struct, frozen=True, kw_only=True):
    id: int
    port: int
    pid: int | None
    # With the pid, the identity of the process: see processes.py.
    started: str | None
    admin_port: int | None = None
    # Stopped or killed by a command for this node: the program that looks after the cluster goes on without it.
    is_down: bool = False
    # The PENSTOCK_… variables that the node was started with: they are properties too.
    variables: Mapping[str, str] = {}


def write_record(folder: Path, nodes: tuple[NodeRecord, ...]) -> None:
    """Replaces the record in one step: a reader sees the old one or the new one."""
    path = folder / FILE_NAME
    staged = path.with_suffix(".tmp")
    # There may be a secret among the variables.
    staged.touch(mode=0o600)
    staged.write_text(json.dumps({"format": _FORMAT, "nodes": [asdict(node) for node in nodes]}, indent=2) + "\n")
    os.replace(staged, path)


def read_record(folder: Path) -> tuple[NodeRecord, ...] | None:
    """The nodes that a cluster in this folder had last; None when there never was one. Raises UnreadableRecordError."""
    path = folder / FILE_NAME
    try:
        content = json.loads(path.read_text())
        if content["format"] != _FORMAT:
            raise UnreadableRecordError(f"{path} has format {content['format']}; this version reads format {_FORMAT}")
        return tuple(NodeRecord(**node) for node in content["nodes"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableRecordError(f"{path} is not the record of a local cluster: {error}") from error
