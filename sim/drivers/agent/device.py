# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The same device as host/agent/c/example_device.c, with the agent in Python: what tests ask of one, they ask of the other.

``python -m liteprobe.sim.drivers.agent.device ADDRESS [LIMIT_MS [SECRET_KEY_FILE CLIENT_KEY_FILE...]]`` prints the address at
which it listens, and ends at SIGTERM.
"""

import itertools
import math
import signal
import sys
import time

from liteprobe.host.agent.agent import Agent
from liteprobe.host.agent.keys import Keys
from liteprobe.host.base.errors import ProbeError

STEP = 0.5
INTERVAL_S = 0.02


class Device:
    """Settings and values of each type, one that refuses and one that hangs.

    ``agent``: gets them.
    """

    def __init__(self, agent: Agent) -> None:
        self.done = 0
        self.reads = itertools.count(1)
        agent.setting("queue_length", minimum=1, maximum=1000)(self.take_int)
        agent.setting("gain", minimum=-10, maximum=10)(self.take_gain)
        agent.setting("enabled")(self.take_bool)
        agent.setting("label")(self.take_text)
        agent.setting("blob")(self.take_octets)
        agent.setting("any")(self.take_int)
        agent.setting("fuse")(self.refuse)
        agent.setting("hang_ms", minimum=0, maximum=60000)(self.hang)
        agent.value("sets")(self.count_sets)
        agent.value("reads", interval_s=INTERVAL_S)(self.count_reads)
        agent.value("broken")(self.not_finite)

    def take_int(self, value: int) -> None:
        """Take it as it is."""
        self.done += 1

    def take_gain(self, value: float) -> float:
        """Take it in steps, and say so."""
        self.done += 1
        return round(value / STEP) * STEP

    def take_bool(self, value: bool) -> None:
        """Take it as it is."""
        self.done += 1

    def take_text(self, value: str) -> None:
        """Take it as it is."""
        self.done += 1

    def take_octets(self, value: bytes) -> None:
        """Take them as they are."""
        self.done += 1

    def refuse(self, value: int) -> None:
        """Refuse it."""
        raise ValueError(f"the fuse is blown ({value})")

    def hang(self, value: int) -> None:
        """Take long."""
        time.sleep(value / 1e3)
        self.done += 1

    def count_sets(self) -> int:
        """Return how often something was set."""
        return self.done

    def count_reads(self) -> int:
        """Return 1, 2, 3, ...: one more each time."""
        return next(self.reads)

    def not_finite(self) -> float:
        """Return what no message can hold."""
        return math.nan


def main(words: list[str]) -> int:
    """Run it."""
    try:
        keys = Keys.read(words[2]) if len(words) > 2 else None
        agent = Agent("example", words[0], keys, words[3:], int(words[1]) / 1e3 if len(words) > 1 else 5.0)
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    Device(agent)
    signal.signal(signal.SIGTERM, lambda *_: agent.stop())
    print(agent.address, flush=True)
    agent.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
