# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A simulated probe as a process: a line in, a line out."""

import contextlib
import subprocess
import threading
import weakref
from collections import deque
from typing import IO

from liteprobe.host.errors import ProbeError, UsageError

USAGE_EXIT_CODE = 2
CLOSE_TIMEOUT_S = 5.0


class SimProcess:
    """A running ``liteprobe-sim``: commands go to its stdin, one line of answer comes back for each.

    Parameters
    ----------
    command : list of str
        The executable and its options.

    Attributes
    ----------
    udp_ports : list of int
        Where it listens on localhost, for each probe.

    Raises
    ------
    UsageError
        When it refuses its options (a wire that can't be).
    ProbeError
        When it ends without an answer.
    """

    def __init__(self, command: list[str]) -> None:
        self._said: deque[str] = deque(maxlen=50)
        self._commands = 0
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for the host, which then stops the train.
            )
        except OSError as error:
            raise ProbeError(
                f"cannot start {command[0]} ({error.strerror}): leave build= out of the URL, and a simulated probe is built"
            ) from None
        self.close = weakref.finalize(self, _end, self._process)
        # A pipe that nobody reads would block it.
        self._listener = threading.Thread(target=_listen, args=(self._process.stderr, self._said), daemon=True)
        self._listener.start()
        word, *numbers = self._answer().split(" ")
        if word != "listening" or not numbers or not all(number.isdecimal() for number in numbers):
            raise self._failure(f"'{' '.join([word, *numbers])}' where 'listening PORT' was due")
        self.udp_ports = [int(number) for number in numbers]

    def command(self, line: str) -> str:
        """Send a line, and return what stands behind ``ok`` in the answer.

        Each line has a number, which its answer repeats: an interrupt may come before a line is sent, or before its answer
        is read, and the next command must not take that answer for its own.
        """
        stdin = self._process.stdin
        assert stdin is not None
        self._commands += 1
        mark = f"#{self._commands} "
        try:
            stdin.write(mark + line + "\n")
            stdin.flush()
        except OSError:
            raise self._failure("it ended") from None
        answer = self._answer()
        while not answer.startswith(mark):
            answer = self._answer()
        answer = answer.removeprefix(mark)
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise ProbeError(f"the simulated probe refuses '{line}': {answer}")
        return rest

    def _answer(self) -> str:
        stdout = self._process.stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise self._failure("it ended")
        return line.strip()

    def _failure(self, what: str) -> ProbeError:
        """Return the error of a process that doesn't answer, with what it printed last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._listener.join(1.0)
        said = list(self._said)
        if self._process.returncode == USAGE_EXIT_CODE:
            return UsageError(
                "\n".join(said) or "the simulated probe refuses its options: see sim://switch?latency=3us"
            )
        tail = "\n".join(said[-5:])
        return ProbeError(f"the simulated probe failed ({what}, exit code {self._process.returncode}): {tail}")


def _listen(stderr: IO[str], said: deque[str]) -> None:
    """Keep the last lines that the process prints."""
    with stderr:
        said.extend(line.rstrip() for line in stderr)


def _end(process: "subprocess.Popen[str]") -> None:
    """End the process, asking first, so that its truth and capture files are whole."""
    assert process.stdin is not None
    if process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            process.stdin.write("quit\n")
            process.stdin.flush()
        try:
            process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
