# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What several tests of the host need."""

from collections.abc import Callable

import pytest

from liteprobe.host.cli import main as cli


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line tool with some arguments; returns exit code, what it printed, and its errors."""

    def command(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command
