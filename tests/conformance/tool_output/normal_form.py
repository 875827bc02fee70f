"""What of an answer is another one in each run: addresses, folders, ids. Each gets a name, such as `<node 1>`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

# Where the tools print an id; it has the same name wherever it comes again.
_ID: Final = re.compile(r"(?:TopicId: |Cluster ID: )([\w-]{22})(?![\w-])")
_FRAME: Final = re.compile(r"\s+(?:at .+\(.+\)|\.\.\. \d+ (?:more|common frames omitted))$")
# How a tool is used is printed by the tool alone.
_USAGE: Final = re.compile(r"(?:Option +Description *|usage: .*)")
# Columns are as wide as the widest address.
_GAP: Final = re.compile(r" *\t *| {2,}")
# In the order of a hash map.
_CONFIGS: Final = re.compile(r"(?<=\tConfigs: )\S.*$")
# A group's coordinator is where its partition of __consumer_offsets was placed.
_COORDINATOR: Final = re.compile(r"<node (\d+)>  \(\1\)")
# The offset of the metadata log, which grows all the time.
_EPOCH: Final = re.compile(r"(?<= Epoch: )\d+")
# Any of them may be the active one.
_ACTIVE_CONTROLLER: Final = re.compile(r"(?<=Local controller )\d+")
_SIZE: Final = re.compile(r'("size":)[1-9]\d*')


class Names:
    """The names of one run. Ids are numbered as they first come in a transcript."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: what stands for which name, such as `127.0.0.1:9092` for `<node 1>`."""
        self._known = dict(sorted(known.items(), key=lambda item: -len(item[0])))
        self._ids: dict[str, str] = {}

    def begin_transcript(self) -> None:
        """Ids are numbered from 1 again."""
        self._ids = {}

    def resolve(self, text: str) -> str:
        """A command line's word in which names stand for what they name in this run."""
        for value, name in (*self._known.items(), *self._ids.items()):
            text = text.replace(name, value)
        return text

    def normalise(self, output: str) -> list[str]:
        """The lines of an output, with names; frames of stack traces are left out, and how the tool is used."""
        lines = [line for line in _without_usage(output.splitlines()) if not _FRAME.match(line)]
        for line in lines:
            for found in _ID.findall(line):
                self._ids.setdefault(found, f"<id {len(self._ids) + 1}>")
        return [self._line(line) for line in lines]

    def _line(self, line: str) -> str:
        line = _CONFIGS.sub(lambda match: ",".join(sorted(match[0].strip().split(","))), line)
        for value, name in (*self._known.items(), *self._ids.items()):
            line = re.sub(rf"(?<![\w.:-]){re.escape(value)}(?![\w-])", name, line)
        line = _ACTIVE_CONTROLLER.sub("<id>", _EPOCH.sub("<offset>", line))
        line = _SIZE.sub(r"\1<size>", _sorted_json(line))
        return _COORDINATOR.sub("<node>  (id)", _GAP.sub("  ", line)).rstrip()


def _without_usage(lines: Sequence[str]) -> Sequence[str]:
    for index, line in enumerate(lines):
        if _USAGE.fullmatch(line):
            return [*lines[:index], "(usage)"]
    return lines


def _sorted_json(line: str) -> str:
    """The same object with its keys and lists in order; any other line as it is."""
    if not line.startswith("{"):
        return line
    try:
        return json.dumps(_sorted(json.loads(line)), separators=(",", ":"))
    except ValueError:
        return line


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=json.dumps)
    return value


def names_of_nodes(nodes: Iterable[tuple[int, str, str, str]]) -> dict[str, str]:
    """What is known of a run's nodes: id, address for clients, address as a controller, folder."""
    known = {}
    for node_id, address, controller, folder in nodes:
        known[address] = f"<node {node_id}>"
        known[address.rpartition(":")[2]] = f"<port {node_id}>"
        known[controller] = f"<controller {node_id}>"
        known[controller.rpartition(":")[2]] = f"<controller port {node_id}>"
        known[folder] = f"<folder {node_id}>"
    return known
