"""How `penstock quorum transfer` and `snapshot` reach the controllers, and what they print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock import cli
from penstock.broker.operator_commands import commands
from penstock.protocol.rest.quorum import (
    SnapshotFile,
    SnapshotList,
    SnapshotRequest,
    Transferred,
    TransferRequest,
    Unanswered,
)

FILE = SnapshotFile(node_id=1, file="/d/0.checkpoint", end_offset=7, epoch=3, size_bytes=90)


class FakeAdmin:
    def __init__(self, urls: str | None) -> None:
        self.urls = urls
        self.asked: list[TransferRequest | SnapshotRequest] = []

    def transfer_quorum(self, body: TransferRequest) -> Transferred:
        self.asked.append(body)
        return Transferred(leader_id=body.to or 3)

    def take_quorum_snapshots(self, body: SnapshotRequest) -> SnapshotList:
        self.asked.append(body)
        silent = [
            Unanswered(node_id=2, reason="Node 2 does not answer: refused."),
            Unanswered(node_id=3, reason="It is busy."),
        ]
        return SnapshotList(snapshots=[FILE], unanswered=[] if body.node_ids else silent)


@pytest.fixture
def admins(monkeypatch: pytest.MonkeyPatch) -> list[FakeAdmin]:
    """The clients that commands have opened."""
    opened: list[FakeAdmin] = []

    @contextmanager
    def admin_of(_bootstrap: object, urls: str | None) -> Iterator[FakeAdmin]:
        opened.append(FakeAdmin(urls))
        yield opened[-1]

    monkeypatch.setattr(commands, "admin_of", admin_of)
    return opened


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.main, ["quorum", *words], prog_name="penstock")


def test_transfer_asks_http_unless_a_nodes_files_are_named(admins: list[FakeAdmin], tmp_path: Path) -> None:
    assert run("transfer", "--to", "2", "--admin", "http://h:1").output == "Node 2 leads the quorum now.\n"
    assert json.loads(run("transfer", "--json").output) == {"leader_id": 3}
    assert [admin.urls for admin in admins] == ["http://h:1", None]
    assert [admin.asked for admin in admins] == [[TransferRequest(to=2)], [TransferRequest(to=None)]]
    direct = run("transfer", "--data", str(tmp_path))
    assert (direct.exit_code, len(admins)) == (1, 2)
    assert "No cluster has been started" in direct.output


def test_snapshots_that_were_made_are_printed_before_what_failed(admins: list[FakeAdmin]) -> None:
    answer = run("snapshot")
    assert answer.exit_code == 1
    assert answer.stdout == "node 1  end offset 7  /d/0.checkpoint\n"
    assert answer.stderr == "Error: Node 2 does not answer: refused. Node 3: It is busy.\n"
    told = json.loads(run("snapshot", "--node", "1", "--json").stdout)
    assert told == {"snapshots": [{"node_id": 1, "file": "/d/0.checkpoint", "end_offset": 7, "epoch": 3}]}
    assert [admin.asked for admin in admins] == [[SnapshotRequest(node_ids=None)], [SnapshotRequest(node_ids=[1])]]


def test_one_of_the_files_of_a_node_is_enough(admins: list[FakeAdmin]) -> None:
    refused = run("transfer", "--config", "a", "--data", "b")
    assert (refused.exit_code, admins) == (2, [])
    assert "give one of them" in refused.output
