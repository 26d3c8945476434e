# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs an agent on this device, or makes keys."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

from liteprobe.host.base.defaults import AGENT_ADDRESS, AGENT_LIMIT_S
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.interrupt import is_ctrl_c
from liteprobe.host.base.text import read_text, say
from liteprobe.host.cli.arguments import add
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns

with lazily():
    from liteprobe.host.agent import agent as agents
    from liteprobe.host.agent import document, keys

HELP = "let measuring scripts set and read this device, or make keys for that"
EXAMPLES = """
liteprobe agent run device.yaml
liteprobe agent keys lab
liteprobe agent run device.yaml --address tcp://0.0.0.0:5580 --keys lab.key_secret --clients me.key
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "action", str, "what to do", choices=tuple(ACTIONS))
    add(
        parser,
        "file",
        Path,
        "run: the device as a YAML document, or a Python file with a function offer(agent); keys: NAME, for NAME.key and "
        "NAME.key_secret",
    )
    add(
        parser, "--address URL", str, f"where to listen; other than loopback with keys alone (default: {AGENT_ADDRESS})"
    )
    add(parser, "--keys FILE", Path, "the agent's own keys (NAME.key_secret)")
    add(
        parser,
        "--clients FILE",
        Path,
        "public key of one who may talk to it (NAME.key), or a folder of them; again for more",
        [],
        action="append",
    )
    add(parser, "--limit TIME", duration_ns, f"what a callback may take (default: {AGENT_LIMIT_S:g}s)")


OFFER = "offer"
#: Counts that are no fault.
PLAIN = ("requests",)


def run(args: argparse.Namespace) -> None:
    """Do what is asked for."""
    ACTIONS[args.action](args)


def _keys(args: argparse.Namespace) -> None:
    if args.address or args.keys or args.clients or args.limit:
        raise UsageError("agent keys takes a name alone: the rest is for 'liteprobe agent run'")
    public, secret = keys.make_keys(args.file)
    say(f"{public}: for the other end\n{secret}: keep it on this machine, it is readable by you alone")


def _run(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C, which is the end that is meant."""
    limit_s = AGENT_LIMIT_S if args.limit is None else args.limit / 1e9
    name, offer = _device(args.file, limit_s)
    own_keys = None if args.keys is None else keys.Keys.read(args.keys)
    agent = agents.Agent(name, args.address or AGENT_ADDRESS, own_keys, args.clients, limit_s)
    offer(agent)
    if not agent.names:
        raise UsageError(f"{args.file} offers nothing: register settings and values in {OFFER}(agent)")
    ended: KeyboardInterrupt | None = None
    try:
        say(f"{name} at {agent.address}: {', '.join(agent.names)}", flush=True)
        agent.run()
    except KeyboardInterrupt as end:
        ended = end
    faults = [f"{count} {what}" for what, count in agent.counts.items() if count and what not in PLAIN]
    say(f"{agent.counts['requests']} requests{''.join(f', {fault}' for fault in faults)}", stream=sys.stderr)
    if ended and not is_ctrl_c(ended):
        raise ended


def _device(path: Path, limit_s: float) -> tuple[str, Callable[[agents.Agent], None]]:
    """Return the name of a device, and what makes an agent offer it."""
    if path.suffix in (".yaml", ".yml"):
        device = document.read_device(read_text(path, "a document of a device"), limit_s, path.name)
        return device.name, device.offer
    if path.suffix != ".py":
        raise UsageError(f"{path} is neither a YAML document nor a Python file: name it like device.yaml or device.py")
    if not path.is_file():
        raise UsageError(f"there is no file {path}: give one with a function {OFFER}(agent)")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    offer: Callable[[agents.Agent], None] | None = getattr(module, OFFER, None)
    if not callable(offer):
        raise UsageError(f"{path} has no function {OFFER}(agent): register settings and values of the agent in one")
    return path.stem, offer


ACTIONS: dict[str, Callable[[argparse.Namespace], None]] = {"run": _run, "keys": _keys}
