# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what commands write line by line."""

import os
import sys
from pathlib import Path

import pytest

from liteprobe.host.base.output import STDOUT, Lines

DOCUMENTS = [{"a": 1}, {"b": [2.5, None]}]
TEXTS = ['{"a": 1}\n', '{"b": [2.5, null]}\n']


def test_lines_are_in_the_file_as_soon_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    lines = Lines(file)
    for number, document in enumerate(DOCUMENTS, 1):
        lines.write(document)
        assert file.read_text() == "".join(TEXTS[:number])
    lines.close()
    with pytest.raises(ValueError, match="closed"):
        lines.write({})


def test_lines_on_stdout_leave_it_open_and_make_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = Lines(STDOUT)
    for document in DOCUMENTS:
        lines.write(document)
    lines.close()
    assert capsys.readouterr().out == "".join(TEXTS)
    assert not sys.stdout.closed and not os.listdir(tmp_path)
