"""Feeds one target with inputs that coverage guides, by atheris: `guided.py TARGET FOLDER [options of libFuzzer]`.

FOLDER gets the corpus, which begins with the target's seeds, and the input that failed, as `crash-…`. To repeat one:
`guided.py TARGET FOLDER FOLDER/crash-…`. Exit status 0: nothing found within the options' limits.
"""

from __future__ import annotations

import sys
import tracemalloc
from hashlib import sha256
from pathlib import Path

import atheris

# kio imports it where it is installed, and instrumented code has no use for it.
sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")]
with atheris.instrument_imports(include=["penstock"], enable_loader_override=False):
    from targets import TARGETS

INPUT_BYTES_MAX = 8192


def main() -> None:
    """Does not return: libFuzzer ends the process."""
    name, folder, *options = sys.argv[1:]
    target = TARGETS[name]
    corpus = Path(folder) / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / sha256(seed).hexdigest()[:16]).write_bytes(seed)
    is_replay = any(not option.startswith("-") for option in options)
    arguments = [sys.argv[0], f"-max_len={INPUT_BYTES_MAX}", f"-artifact_prefix={folder}/", *options]
    tracemalloc.start()
    atheris.Setup(arguments if is_replay else [*arguments, str(corpus)], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
