"""Damage to logs: one bit or an end, of logs of the topics that are named."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from penstock.chaos.faults.damaged_files import cut_end, flip_bit, has_log
from penstock.local.errors import ClusterError


@pytest.fixture
def data(tmp_path: Path) -> Path:
    files = {
        "t-0": b"",
        "t-1": b"records",
        "t-1-other": b"records",
        "u-0": b"records",
        "__cluster_metadata-0": b"entries",
    }
    for folder, content in files.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "00000000000000000000.log").write_bytes(content)
        (tmp_path / folder / "00000000000000000000.index").write_bytes(b"index")
    return tmp_path


def contents(data: Path) -> dict[str, bytes]:
    return {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}


def test_one_bit_flips_in_a_log_of_the_topic_and_nothing_else_changes(data: Path) -> None:
    before = contents(data)
    for seed in range(50):
        told = flip_bit(data, ["t"], Random(seed))
        after = contents(data)
        (changed,) = [name for name in after if after[name] != before[name]]
        assert changed == told["file"] == "t-1/00000000000000000000.log"
        bits = [one ^ other for one, other in zip(before[changed], after[changed], strict=True)]
        assert sum(bit.bit_count() for bit in bits) == 1
        assert bits[told["position"]] == told["before"] ^ told["after"]
        before = after


def test_the_end_is_cut_and_of_a_log_that_is_shorter_all_of_it(data: Path) -> None:
    assert cut_end(data, ["t"], 3) == {"file": "t-1/00000000000000000000.log", "size": 7, "kept": 4}
    assert (data / "t-1" / "00000000000000000000.log").read_bytes() == b"reco"
    assert cut_end(data, ["t"], 100)["kept"] == 0


def test_nothing_to_damage_is_told(data: Path) -> None:
    with pytest.raises(ClusterError, match=r"no log below .* has anything in it"):
        flip_bit(data, ["v"], Random(1))


def test_a_log_counts_when_there_is_something_in_it(data: Path) -> None:
    assert has_log(data, ["t"])
    assert not has_log(data, ["v"])
    (data / "t-1" / "00000000000000000000.log").write_bytes(b"")
    assert not has_log(data, ["t"])
    assert has_log(data, ["t", "u"])
