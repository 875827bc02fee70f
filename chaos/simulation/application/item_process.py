"""A test that asks for `penstock_sim`, in the interpreter that it needs: pytest's own has a real clock."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ....local.child_processes import start_child
from ..cluster.command import ENVIRONMENT

if TYPE_CHECKING:
    # Where tests are started nothing of a node is imported.
    from .simulation import Simulation

_PREPARED: Final = "penstock.chaos.simulation.application.prepared_world"
PROGRAM: Final = "penstock.chaos.simulation.application.item_program"
_CAPTURED: Final = ("Captured stdout", "Captured stderr")
_MISSING: Final = "penstock_sim needs aiokafka: pip install 'penstock-broker[chaos]'"


@dataclass(slots=True)
class ItemProcess:
    """`folder` is one of the test's own. `sections` of its report are there after `run`."""

    item: pytest.Item
    folder: Path
    sections: list[tuple[str, str]]

    def run(self) -> None:
        """Fails or skips the test as it did there."""
        if importlib.util.find_spec("aiokafka") is None:
            pytest.fail(_MISSING, pytrace=False)
        results = self.folder / "reports.json"
        output = self._call([sys.executable, "-P", "-m", PROGRAM, str(results), *_arguments(self.item, self.folder)])
        reports = json.loads(results.read_text()) if results.exists() else []
        # Later reports of a test have the sections of earlier ones again.
        for title, text in {title: text for report in reports for title, text in report["sections"]}.items():
            if title.startswith(_CAPTURED):
                (sys.stderr if "stderr" in title else sys.stdout).write(text)
            else:
                self.sections.append((title, text))
        for report in reports:
            if report["outcome"] == "failed":
                pytest.fail("\n\n".join(filter(None, (report["crash"], report["text"]))), pytrace=False)
        for report in reports:
            if report["outcome"] == "skipped":
                pytest.skip(report["reason"].removeprefix("Skipped: "))
        if not any(report["when"] == "call" for report in reports):
            pytest.fail(f"the interpreter of the simulation ended without a report:\n{output}", pytrace=False)

    def _call(self, command: list[str]) -> str:
        """Returns what it wrote. A group of its own ends with it: it forks."""
        with start_child(
            command, cwd=self.item.config.invocation_params.dir, env=_environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as child:  # fmt: skip
            try:
                return child.communicate()[0].decode(errors="replace")
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)


def is_needed() -> bool:
    """Whether scenarios cannot run in this interpreter."""
    return _PREPARED not in sys.modules


def sections_of(item: pytest.Item, simulated: Simulation | ItemProcess) -> list[tuple[str, str]]:
    """What the report of a failed test shows: how it is run again, and what happened."""
    if isinstance(simulated, ItemProcess):
        return simulated.sections
    seed = simulated.seed
    return [
        (f"penstock: seed {seed}", f"the same run again: pytest {shlex.quote(item.nodeid)} --penstock-seed {seed}"),
        ("penstock: what happened", simulated.story),
    ]


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_ADDOPTS", "PYTEST_XDIST"))
    }
    # Modules are found where they are found here.
    path = os.pathsep.join(place or os.getcwd() for place in sys.path)
    return {**kept, **ENVIRONMENT, "PYTHONPATH": path}


def _arguments(item: pytest.Item, folder: Path) -> list[str]:
    """Only this test, with what decides how it is found; what is for the session as a whole stays here."""
    config, option = item.config, item.config.option
    seed = config.getoption("penstock_seed")
    arguments: list[Any] = [
        f"{item.path}::{item.nodeid.partition('::')[2]}",
        f"--rootdir={config.rootpath}",
        *([] if config.inipath is None else ["-c", config.inipath]),
        *(part for setting in option.override_ini or () for part in ("-o", setting)),
        *("-o", "addopts="),
        *(["-o", f"cache_dir={folder / 'cache'}"] if config.pluginmanager.hasplugin("cacheprovider") else []),
        f"--basetemp={folder / 'temporary'}",
        f"--import-mode={option.importmode}",
        f"--tb={option.tbstyle}",
        *(["-vv"] if option.verbose > 1 else []),
        *([] if option.confcutdir is None else [f"--confcutdir={option.confcutdir}"]),
        *(part for name in option.plugins or () for part in ("-p", name)),
        *(part for name in option.pythonwarnings or () for part in ("-W", name)),
        # An expected failure is one of the test here.
        "--runxfail",
        *([] if seed is None else [f"--penstock-seed={seed}"]),
    ]
    return [str(one) for one in arguments]
