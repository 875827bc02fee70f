"""What can go wrong with a local cluster; each message is the sentence to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ClusterError(Exception):
    """What was asked for cannot be, or did not come about."""


class NodeFailedError(ClusterError):
    """A node ended, or did not do what it was told. The sentence comes last, behind the end of the node's log."""

    def __init__(self, sentence: str, *, log: Path | None = None, log_tail: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.log = log
        self.log_tail = log_tail

    def __str__(self) -> str:
        where = "" if self.log is None else f"; its log is {self.log}"
        return f"{self.log_tail}\n{self.sentence}{where}" if self.log_tail else f"{self.sentence}{where}"


class PortInUseError(ClusterError):
    """A node could not listen there."""


class UnreadableRecordError(ClusterError):
    """The record of a cluster is there and is not one."""
