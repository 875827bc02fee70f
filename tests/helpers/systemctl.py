"""A stand-in for systemctl: starts and stops nodes as penstock.service and penstock@.service say.

`python systemctl.py FOLDER start|stop|restart UNIT…`, `enable --now UNIT…`, `daemon-reload`. The folder has the
properties in etc/, and gets run/UNIT and log/UNIT; log/NAME for penstock@NAME.
"""

import signal
import subprocess
import sys
from pathlib import Path

from penstock.local.processes import ProcessId, identify, is_running, send_signal, wait_gone

STOP_TIMEOUT_S = 120.0
UNITS = Path(__file__).parents[2] / "deploy" / "systemd"


def running(folder: Path, name: str) -> ProcessId | None:
    """Return the process of the node, if it runs."""
    file = folder / "run" / name
    if not file.exists():
        return None
    pid, _, started = file.read_text().partition(" ")
    process = ProcessId(pid=int(pid), started=started)
    return process if is_running(process) else None


def command(folder: Path, name: str, key: str) -> list[str]:
    """What the unit executes, with the program and the folder of this machine."""
    file = UNITS / ("penstock.service" if name == "penstock" else "penstock@.service")
    (line,) = (line for line in file.read_text().splitlines() if line.startswith(f"{key}="))
    _, *words = line.partition("=")[2].split()
    here = [word.replace("%i", name).replace("/etc/penstock", str(folder / "etc")) for word in words]
    return [sys.executable, "-P", "-m", "penstock", *here]


def start(folder: Path, name: str) -> None:
    assert running(folder, name) is None, f"{name} runs"
    with (folder / "log" / name).open("ab") as log:
        child = subprocess.Popen(
            command(folder, name, "ExecStart"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    process = identify(child.pid)
    assert process is not None, f"{name} did not start"
    (folder / "run" / name).write_text(f"{process.pid} {process.started}")


def drain(folder: Path, names: list[str]) -> None:
    """All at once, as systemd stops several units."""
    begun = []
    for name in names:
        if running(folder, name) is not None:
            with (folder / "log" / name).open("ab") as log:
                begun.append(subprocess.Popen(command(folder, name, "ExecStop"), stdout=log, stderr=log))
    for hook in begun:
        hook.wait(STOP_TIMEOUT_S)


def stop(folder: Path, names: list[str], number: signal.Signals = signal.SIGTERM) -> None:
    """All are told before one is waited for."""
    processes = [process for name in names if (process := running(folder, name)) is not None]
    for process in processes:
        send_signal(process, number)
    for process in processes:
        assert wait_gone(process, timeout_s=STOP_TIMEOUT_S), f"process {process.pid} does not stop"


def main(folder: Path, verb: str, words: list[str]) -> None:
    names = [name_of(word) for word in words if not word.startswith("-")]
    if verb in ("stop", "restart"):
        drain(folder, names)
        stop(folder, names)
    if verb in ("start", "restart") or (verb == "enable" and "--now" in words):
        for name in names:
            start(folder, name)


def name_of(unit: str) -> str:
    return unit.removeprefix("penstock@")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
