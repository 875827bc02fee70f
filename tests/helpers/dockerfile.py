"""A Dockerfile carried out without a container engine: its steps run in root trees of their own, by chroot.

Only what ours uses is understood; another instruction is an error. The base image is Debian's minimal system by
debootstrap, as Debian's own image is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from missing_tools import unavailable

from penstock.client.cached_programs import cache_folder

STEP_TIMEOUT_S: Final = 600
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What this machine needs to reach its registries; a machine that reaches them directly has none of it.
_REACHING: Final = re.compile(r"PIP_\w+|\w+_proxy", re.IGNORECASE)
_MIRROR: Final = "http://deb.debian.org/debian"


@dataclass(kw_only=True)
class Image:
    """A root tree, and what a container of it is started with."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    folder: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)

    def command(self, arguments: list[str], *, environment: Mapping[str, str] | None = None) -> list[str]:
        """Return the command that runs another in the tree, as the image's user; it takes the place of its caller."""
        inside = {**self.environment, **(environment or {})}
        enter = 'mount -t proc proc "$0/proc" && cd "$0" && exec chroot --userspec="$1" "$0" env -i "${@:2}"'
        settings = [f"{name}={value}" for name, value in inside.items()]
        there = ["sh", "-c", 'cd "$0" && exec "$@"', self.folder, *arguments]
        return ["unshare", "--mount", "bash", "-c", enter, str(self.root), self.user, *settings, *there]

    def run(self, arguments: list[str], *, environment: Mapping[str, str] | None = None, text: str = "") -> str:
        """Run a command to its end and return what it prints. AssertionError when it fails."""
        done = subprocess.run(
            self.command(arguments, environment=environment),
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=STEP_TIMEOUT_S,
        )
        assert done.returncode == 0, f"{arguments}:\n{done.stdout[-4000:]}"
        return done.stdout


def require_chroot() -> None:
    """Leave the test out on a machine that cannot do this."""
    if os.geteuid() != 0:
        unavailable("only root may chroot: run the tests as root to build the container image")
    if shutil.which("debootstrap") is None:
        unavailable("debootstrap is not installed (Debian: apt-get install debootstrap)")


def build(dockerfile: Path, context: Path, folder: Path) -> Image:
    """Carry out all steps and return the image of the last stage."""
    stages: dict[str, Image] = {}
    image: Image | None = None
    steps = list(instructions(dockerfile.read_text()))
    for number, (instruction, rest) in enumerate(steps):
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            following, first_step = steps[number + 1]
            assert following == "RUN", f"a stage begins with a step that installs packages, but {base} with {following}"
            image = Image(root=folder / f"stage-{len(stages)}")
            stages[name or str(len(stages))] = image
            _layer(image, first_step, _base(base, folder))
        elif number and steps[number - 1][0] != "FROM":
            assert image is not None, f"{instruction} before FROM"
            _carry_out(instruction, rest, image, stages, context, dockerfile)
    assert image is not None
    return image


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction with its arguments; comments left out, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield instruction.upper(), " ".join(rest.split()) if instruction.upper() != "RUN" else rest.strip()


def _carry_out(
    instruction: str, rest: str, image: Image, stages: Mapping[str, Image], context: Path, dockerfile: Path
) -> None:
    match instruction:
        case "RUN":
            image.run(["/bin/sh", "-c", rest], environment=_reaching(image.root))
        case "COPY":
            *options, source, target = rest.split()
            assert options in ([], *([f"--from={name}"] for name in stages))
            to = image.root / os.path.join(image.folder, target).lstrip("/")
            if options:
                _copy(stages[options[0].partition("=")[2]].root / source.lstrip("/"), to, ())
            else:
                _copy(context / source, to, _ignored(dockerfile))
        case "ENV":
            image.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        case "WORKDIR":
            image.folder = rest
            (image.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "USER":
            assert re.fullmatch(r"\d+:\d+", rest), rest
            image.user = rest
        case "ENTRYPOINT":
            image.entrypoint = json.loads(rest)
        case "VOLUME" | "EXPOSE" | "STOPSIGNAL" | "HEALTHCHECK":
            pass
        case _:
            raise AssertionError(f"{instruction} is not understood here")


def _base(name: str, folder: Path) -> Path:
    """Return the archive of Debian's minimal system, which is made once a machine."""
    match = re.fullmatch(r"debian:(\w+)-slim", name)
    assert match is not None, f"the base is {name}, but only Debian's slim images can be made here"
    archive = cache_folder() / f"debian-{match[1]}.tar"
    if not archive.exists():
        made = folder / "base"
        command = ["debootstrap", "--variant=minbase", match[1], str(made), _MIRROR]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=STEP_TIMEOUT_S
        )
        assert done.returncode == 0, done.stdout[-4000:]
        shutil.rmtree(made / "var" / "cache" / "apt" / "archives")
        _pack(made, archive)
        shutil.rmtree(made)
    return archive


def _layer(image: Image, first_step: str, base: Path) -> None:
    """Carry out the step that installs packages; its layer is kept, as an engine keeps it, until the step changes."""
    named = hashlib.sha256(f"{base.name} {first_step}".encode()).hexdigest()[:16]
    archive = cache_folder() / f"layer-{named}.tar"
    if not archive.exists():
        _unpack(base, image.root)
        image.run(["/bin/sh", "-c", first_step], environment=_reaching(image.root))
        _pack(image.root, archive)
        return
    _unpack(archive, image.root)


def _pack(root: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(f".{os.getpid()}")
    with tarfile.open(partial, "w") as tar:
        tar.add(root, ".")
    partial.rename(archive)


def _unpack(archive: Path, root: Path) -> None:
    root.mkdir(parents=True)
    with tarfile.open(archive) as tar:
        tar.extractall(root, numeric_owner=True, filter="fully_trusted")
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")


def _reaching(root: Path) -> dict[str, str]:
    """Return what the environment of a step has beside the image's own."""
    told = {name: value for name, value in os.environ.items() if _REACHING.fullmatch(name)}
    if "PIP_CERT" in told:
        told["PIP_CERT"] = "/tmp/authorities.pem"
        shutil.copy(os.environ["PIP_CERT"], root / "tmp" / "authorities.pem")
    return {"DEBIAN_FRONTEND": "noninteractive", **told}


def _ignored(dockerfile: Path) -> tuple[str, ...]:
    lines = dockerfile.with_name(f"{dockerfile.name}.dockerignore").read_text().splitlines()
    return tuple(line.removeprefix("**/") for line in lines if line and not line.startswith("#"))


def _copy(source: Path, to: Path, ignored: tuple[str, ...]) -> None:
    if source.is_dir():
        shutil.copytree(source, to, symlinks=True, ignore=shutil.ignore_patterns(*ignored), dirs_exist_ok=True)
    else:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, to)
