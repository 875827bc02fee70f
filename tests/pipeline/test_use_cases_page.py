"""The section of docs/use-cases.md that needs Spark, typed as its reader types it."""

from __future__ import annotations

from pathlib import Path

import pytest
import use_cases_page
from use_cases_page import STREAM_PROCESSING

from penstock.local.cluster import LocalCluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_reader_of_the_page_sees_windows_of_clicks(
    cluster: LocalCluster, spark_jars: tuple[Path, ...], tmp_path: Path
) -> None:
    variables = use_cases_page.environment(cluster.bootstrap, tmp_path / "bin")
    use_cases_page.follow(use_cases_page.sessions()[STREAM_PROCESSING], tmp_path, variables)
