"""The Chromium of this machine, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from missing_tools import unavailable
from playwright.sync_api import Browser, sync_playwright

# Chromium asks for nothing but the page of a test.
SWITCHES: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        unavailable("Chromium is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        try:
            yield started
        finally:
            started.close()
