"""What a test that fails with a mutant applied leaves behind is gone before the next test begins."""

import socket
from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent

import directed_tests
import pytest

LEAVES_SOMETHING_OPEN = """
    import logging
    from pathlib import Path

    class Open:
        def __init__(self):
            self.itself = self

        def __del__(self):
            Path(__file__).with_name("collected").touch()

    def test_that_fails():
        left_open = Open()
        try:
            raise OSError("of a task of the node")
        except OSError:
            logging.getLogger("penstock").exception("Fetcher failed")
        assert left_open is None
"""


def test_what_a_failed_test_left_open_and_logged_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "test_open.py").write_text(dedent(LEAVES_SOMETHING_OPEN))
    monkeypatch.setattr(directed_tests, "UNIT", tmp_path)
    (failure,) = directed_tests.failures_with(nullcontext(), "test_open.py")
    assert "left_open is None" in failure
    assert (tmp_path / "collected").exists()
    assert not caplog.records


def test_sockets_that_a_failed_test_leaves_open_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
        import socket

        def test_that_fails():
            socket.mutant_left = socket.socket()
            assert False
    """
    (tmp_path / "test_open_socket.py").write_text(dedent(program))
    monkeypatch.setattr(directed_tests, "UNIT", tmp_path)
    with pytest.raises(AssertionError, match="leaves 1 sockets open"):
        directed_tests.failures_with(nullcontext(), "test_open_socket.py")
    vars(socket).pop("mutant_left").close()
