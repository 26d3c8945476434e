# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Ports that replay what the host streams to them."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit.sources.replay import ReplayPort
from liteprobe.cores.transmit.sources.sets import SetRegisters
from liteprobe.soc.main_ram import add_place, burst_port, ring_address

def add_replays(soc):
    """Give each port of ``soc`` its ring; what fills the rings is added with the management link (`add_datagrams`)."""
    soc.replay_ports = []
    for number in range(soc.probe_config.ports):
        add_replay(soc, number, getattr(soc, f"port{number}_tx"))
    if soc.probe_config.makes_sets:
        add_table(soc)

def add_replay(soc, number, path):
    """Let a port replay on its ``path``: registers ``port<n>_replay``."""
    port = ReplayPort(path, burst_port(soc, writes=False), ring_address(soc, number))
    port.add_csr()
    soc.add_module(name=f"port{number}_replay", module=port)
    soc.replay_ports.append(port)
    if soc.probe_config.makes_sets:
        soc.add_module(name=f"port{number}_sets", module=SetRegisters(path.sets))

def add_table(soc):
    """Let the host find the table of sets in the SDRAM: memory ``sets_table``, a part of the SDRAM's region."""
    add_place(soc, "sets_table", "sets")
