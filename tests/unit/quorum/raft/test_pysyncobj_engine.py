"""The library as it may be used: this version, these names, no pickle."""

import subprocess
import sys

import pysyncobj.pickle as library_pickle
import pysyncobj.version
import pytest
from pysyncobj import syncobj as library
from quorum_table import elected

from penstock.quorum.raft.consensus import ConsensusFailed
from penstock.quorum.raft.pysyncobj_engine import VERSION, install_hooks


@pytest.mark.parametrize("name", ["load", "loads", "dump", "dumps"])
def test_its_pickle_functions_raise(name: str) -> None:
    install_hooks()
    with pytest.raises(ConsensusFailed, match=f"called pickle.{name}"):
        getattr(library_pickle, name)(b"cos\n_exit\n(I77\ntR.")


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pysyncobj.version, "VERSION", "0.3.18")
    with pytest.raises(ConsensusFailed, match=rf"PySyncObj {VERSION} only, and 0.3.18 is installed"):
        install_hooks()


def test_one_without_the_names_that_are_replaced_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(library, "createJournal")
    monkeypatch.delattr(library.SyncObj, "_checkCommandsToApply")
    with pytest.raises(ConsensusFailed, match="lacks createJournal, _checkCommandsToApply"):
        install_hooks()


def test_no_other_module_imports_it() -> None:
    program = (
        "import sys; import penstock.quorum.raft.log, penstock.quorum.voter.journal, penstock.quorum.raft.messages, "
        "penstock.quorum.links.stream_links, penstock.quorum.voter.snapshots, penstock.quorum.voter.voter_disk, "
        "penstock.quorum.raft.replicator, penstock.quorum.controller.controller; sys.exit('pysyncobj' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_it_starts_no_thread_and_sees_no_command() -> None:
    import threading

    # Threads that other tests have left may end meanwhile.
    before = {*threading.enumerate()}
    table = elected()
    table.propose(table.leader_id, b"a secret")
    table.run(0.2)
    assert not {*threading.enumerate()} - before
    for core in table.cores.values():
        journal = core._rules._journal
        assert {mark[0] for mark in journal[:]} == {b"\x10"}
