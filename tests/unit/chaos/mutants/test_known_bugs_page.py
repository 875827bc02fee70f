"""`docs/known-bugs.md` names tests and mutants that there are, for every bug."""

import re
from pathlib import Path

from penstock.chaos.mutants import reported_mutants
from penstock.chaos.mutants.forms import BUGS

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "known-bugs.md").read_text()
ROWS = [row.strip("| ").split(" | ") for row in PAGE.splitlines() if row.startswith("| ") and "::test_" in row]


def test_each_of_the_22_bugs_has_a_row() -> None:
    assert [row[0] for row in ROWS if re.match(r"B\d", row[0])] == [f"B{number}" for number in range(1, 23)]


def test_every_row_names_a_test_and_every_test_that_is_named_is_there() -> None:
    for row in ROWS:
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", " ".join(row))
        assert named, row
        for file, test in named:
            path = ROOT / "tests" / file
            assert path.is_file(), f"{row[0]}: there is no tests/{file}"
            assert re.search(rf"^(?:async )?def {test}\(", path.read_text(), re.MULTILINE), (
                f"{row[0]}: no {test} in tests/{file}"
            )


def test_mutants_that_are_named_are_there_and_all_that_were_reported_are_named() -> None:
    # Names of mutants have hyphens, what else is quoted has none.
    named = {name for row in ROWS for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", " ".join(row))}
    assert named <= BUGS.keys(), sorted(named - BUGS.keys())
    assert reported_mutants.BUGS.keys() <= named, sorted(reported_mutants.BUGS.keys() - named)


def test_stories_that_are_named_are_told() -> None:
    stories = [path.stem for path in (ROOT / "tests" / "golden" / "replication").iterdir()]
    named = re.findall(r"\(((?:`\w+`(?:, )?)+)\)", PAGE)
    for name in re.findall(r"`(\w+)`", " ".join(named)):
        assert any(story.startswith(name) for story in stories), name
