# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Probes and files that several tests of commands have."""

from pathlib import Path

import people
import pytest


@pytest.fixture
def models(probes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each command has a new probe, and the files that examples take for granted where it runs."""
    monkeypatch.chdir(tmp_path)
    people.write_files(tmp_path)
