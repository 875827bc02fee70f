"""What a test that fails with a mutant applied leaves behind is gone before the next test begins."""

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
