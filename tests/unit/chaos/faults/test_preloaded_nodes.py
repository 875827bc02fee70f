"""Nodes that are forked from a process which has loaded their code: processes as any other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from waiting import wait_for

from penstock.chaos.faults.node_faults import NodeFaults
from penstock.chaos.faults.preloaded_nodes import PreloadedNodes
from penstock.local.errors import NodeFailedError
from penstock.local.local_node import LocalNode
from penstock.local.processes import identify


@pytest.mark.thorough
def test_a_node_that_cannot_start_leaves_its_sentence_in_its_own_log_and_is_gone(tmp_path: Path) -> None:
    preloaded = PreloadedNodes(os.environ)
    try:
        node = LocalNode(id=1, port=0, data=tmp_path / "node-1", environment={})
        faults = NodeFaults(node)
        node.properties.write_text("node.id=nothing\n")
        pids = [preloaded.start(faults.orders_path, node.properties, node.log) for _ in range(2)]
        wait_for(lambda: not any(map(identify, pids)), "both nodes end")
        assert len({*pids, preloaded.pid}) == 3
        assert node.log.read_text().count("penstock: ") == 2
        assert "node.id" in node.log.read_text()
    finally:
        preloaded.end()


def test_what_has_ended_starts_no_node(tmp_path: Path) -> None:
    preloaded = PreloadedNodes(os.environ)
    preloaded.end()
    with pytest.raises(NodeFailedError, match="the process that starts nodes has ended"):
        preloaded.start(tmp_path / "orders", tmp_path / "properties", tmp_path / "log")
