"""The nodes of a test's cluster: behind proxies where this machine can, so that links can be broken."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...client.cached_programs import TOXIPROXY, find_program
from ...local.preloaded_nodes import PreloadedNodes
from .plain_nodes import PlainNodes

if TYPE_CHECKING:
    from .proxied_nodes import ProxiedNodes

MISSING_LINKS: Final = (
    "it takes toxiproxy's driver (pip install 'penstock-broker[chaos]') and its server (`penstock chaos "
    "install-toxiproxy` builds it), and a cluster that is started afterwards"
)


def make_nodes(
    folder: Path,
    *,
    node_count: int,
    client_slots: int,
    properties: Mapping[str, str],
    preloaded: PreloadedNodes,
    seed: int,
) -> PlainNodes | ProxiedNodes:
    """Nothing is started yet. Raises ClusterError, PortInUseError."""
    if find_spec("toxiproxy") is None or find_program(TOXIPROXY) is None:
        return PlainNodes(folder, node_count=node_count, properties=properties, preloaded=preloaded, seed=seed)
    from .proxied_nodes import ProxiedNodes

    return ProxiedNodes(
        folder,
        node_count=node_count,
        client_slots=client_slots,
        properties=properties,
        preloaded=preloaded,
        seed=seed,
    )
