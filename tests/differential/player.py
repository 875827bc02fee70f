"""Plays cases when they are asked for, so that one test alone costs only what it needs."""

from __future__ import annotations

import os

from differential.cases import CASES
from differential.golden import as_recorded
from differential.script import Case, Transcript, play
from differential.target import Target

IS_LIVE = os.environ.get("PENSTOCK_DIFFERENTIAL") == "live" or os.environ.get("CI") == "true"
"""Whether Apache Kafka runs as well; on build machines it does, for there everything that tests need is installed."""


class Player:
    """Plays cases against one broker when they are asked for, each once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._transcript: Transcript = {}

    def transcript_of(self, case: Case) -> Transcript:
        for version in case.versions:
            label = case.label(version)
            if label not in self._transcript:
                self._transcript[label] = as_recorded({label: play(case, version, self.target)})[label]
        return {label: self._transcript[label] for label in case.labels}

    def whole_transcript(self) -> Transcript:
        return {label: answers for case in CASES.values() for label, answers in self.transcript_of(case).items()}
