"""The history that verdicts are timed with is that of a healthy cluster."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from penstock.bench.judging import main


@pytest.mark.thorough
@pytest.mark.parametrize("workload", ["queue", "register"])
def test_the_history_has_the_operations_that_were_asked_for_and_nothing_forbidden(workload: str) -> None:
    answer = CliRunner().invoke(main, ["--operations", "2000", "--workload", workload])
    assert answer.exit_code == 0, answer.output
    figures = json.loads(answer.output)
    assert (figures["verdict"], figures["operations"]) == ("valid", 2000)
    assert figures["writes"] > 500
    assert figures["reads"] > 500
