"""Where the server of toxiproxy is found: the machine's own before the one that was built."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client.cached_programs import TOXIPROXY, cache_folder, find_program, toxiproxy_folder


def _program(folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TOXIPROXY
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_program_of_the_machine_comes_before_the_one_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert cache_folder() == tmp_path / "cache" / "penstock"
    assert find_program(TOXIPROXY) is None
    built = _program(toxiproxy_folder())
    assert find_program(TOXIPROXY) == built
    assert find_program("nft") is None
    own = _program(tmp_path / "bin")
    assert find_program(TOXIPROXY) == own
