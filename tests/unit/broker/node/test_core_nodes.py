"""Lines of several nodes in one log."""

import io

from penstock.broker.node.core_nodes import PrefixedLines


def test_every_line_has_the_name_of_its_node() -> None:
    log = io.StringIO()
    lines = PrefixedLines(log, "node-3 ")
    for text in ("one\n", "two\nthree\n", "fo", "ur\nfive\n", "", "\n"):
        assert lines.write(text) == len(text)
    assert log.getvalue() == "node-3 one\nnode-3 two\nnode-3 three\nnode-3 four\nnode-3 five\nnode-3 \n"


def test_what_is_written_at_once_goes_out_at_once() -> None:
    written: list[str] = []

    class _Target(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    PrefixedLines(_Target(), "node-3 ").write("Traceback\n  line\n")
    assert written == ["node-3 Traceback\nnode-3   line\n"]
