# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Lets a measuring script set and read a device under test, through an agent there, and records what it did with its times."""

from liteprobe.host.agent.agent import Agent
from liteprobe.host.agent.client import AgentClient, AgentError
from liteprobe.host.agent.connection import AgentUnreachableError
from liteprobe.host.agent.keys import Keys, make_keys

__all__ = ["Agent", "AgentClient", "AgentError", "AgentUnreachableError", "Keys", "make_keys"]
