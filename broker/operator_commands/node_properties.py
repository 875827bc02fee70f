"""The properties of a node as an operator's credentials: they name the controllers and prove that one may ask them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import click

from ...protocol.errors import ConfigError
from ...quorum.raft.operations import Refused, SnapshotTaken, TakeSnapshot
from ...storage.disk.files import DiskFiles
from ..configuration.node_config import NodeConfig
from ..configuration.properties import load_properties, merge_properties
from .controllers import Controllers, Unanswered
from .quorum_operator import Snapshot


def direct_operator(config_path: str | None, folder: str | None, *, timeout_ms: int) -> DirectOperator:
    """With the properties of that file, or of a node of `penstock up` in that folder. Raises ClickException."""
    try:
        if config_path is not None:
            config = load_node(config_path)
        else:
            assert folder is not None, "one of the two is given"
            # A cluster on this machine is as its files say, whatever is exported around it.
            config = _load(_local_properties(folder), {})
        return DirectOperator(Controllers(config, DiskFiles(), timeout_ms=timeout_ms))
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


def load_node(path: str) -> NodeConfig:
    """The node of a file of properties, as `penstock start` reads it with what is exported. Raises ConfigError."""
    return _load(path, dict(os.environ))


class DirectOperator:
    """Asks the controllers on their own listener, as a node does."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers

    def transfer(self, target_id: int | None) -> int:
        try:
            return asyncio.run(self._controllers.transfer(target_id))
        except Unanswered as error:
            raise click.ClickException(str(error)) from error

    def take_snapshots(self, node_ids: Sequence[int]) -> tuple[list[Snapshot], list[str]]:
        return asyncio.run(self._take_snapshots(node_ids or self._controllers.ids))

    async def _take_snapshots(self, node_ids: Sequence[int]) -> tuple[list[Snapshot], list[str]]:
        taken, failures = [], []
        for node_id in node_ids:
            try:
                outcome = await self._controllers.ask(node_id, TakeSnapshot())
            except Unanswered as error:
                failures.append(str(error))
                continue
            if isinstance(outcome, SnapshotTaken):
                taken.append(Snapshot(node_id, outcome.file, outcome.end_offset, outcome.epoch))
            elif isinstance(outcome, Refused):
                failures.append(f"Node {node_id}: {outcome.sentence}")
        return taken, failures


def _load(path: str, environment: dict[str, str]) -> NodeConfig:
    files = DiskFiles()
    try:
        text = files.read(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    properties = merge_properties(file_text=text, environment=environment)
    return load_properties(properties, files=files, environment=os.environ)


def _local_properties(folder: str) -> str:
    files = DiskFiles()
    names = files.list_directory(folder) if files.is_directory(folder) else []
    found = [name for name in names if name.startswith("node-") and name.endswith(".properties")]
    if not found:
        raise ConfigError(
            f"No cluster has been started in {folder}. --config names the properties of a node of another one."
        )
    return f"{folder}/{found[0]}"
