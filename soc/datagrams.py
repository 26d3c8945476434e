# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Joins the receiver of datagrams, which fills the rings of ports that replay, between the management port and its stack."""

from migen import *

from liteprobe.cores.capture.export import FrameArbiter
from liteprobe.cores.formats import STATUS_PERIOD_S
from liteprobe.cores.receive.datagrams.counts import COUNTS, STRANGE
from liteprobe.cores.receive.datagrams.receiver import DatagramReceiver
from liteprobe.cores.receive.datagrams.status import ERRORS_WORD, FIRST_UNDERRUN_WORD, FRAMES_WORD, SHOWN_WORDS, UNDERRUNS_WORD
from liteprobe.soc.main_ram import burst_port, ring_address

#: Words of a ring's counts that are registers of its port.
REGISTERS = ("accepted", "datagrams", "repeated", "early", "full")
#: Words behind the counts of two rings that are registers of its port, too.
SHOWN     = {
    "underruns": UNDERRUNS_WORD, "frames": FRAMES_WORD, "first_underrun": FIRST_UNDERRUN_WORD, "errors": ERRORS_WORD,
}
SHOWN_BASE = 2*COUNTS

def add_datagrams(soc, receive, transmit, has_room):
    """Take datagrams out of ``receive``, and answer on ``transmit`` before all others; return what the stack has in their place.

    Registers ``port<n>_replay_accepted``, ``_datagrams``, ``_repeated``, ``_early``, ``_full`` and ``_strange``, and of the
    replay ``_frames``, ``_underruns``, ``_first_underrun`` and ``_errors``.

    Parameters
    ----------
    soc : ProbeSoC
        With ``replay_ports``, of each test port: ``session``, ``opens``, ``closes``, ``restart``, ``is_restarted``, ``written``,
        ``fetched``, ``keeps``, ``frames``, ``underruns``, ``first_underrun``, ``errors``, ``is_running``, ``is_starved``.
    receive, transmit, has_room
        As of `ProbeSoC.add_management`.
    """
    config = soc.probe_config
    soc.datagrams = datagrams = DatagramReceiver(config.ports, burst_port(soc), ring_address(soc), config.mac_address,
        config.ip_address, int(STATUS_PERIOD_S*soc.sys_clk_freq))
    soc.datagrams_arbiter = arbiter = FrameArbiter(is_quiet=False)
    soc.comb += [
        receive.connect(datagrams.sink),
        datagrams.status.connect(arbiter.first),
        arbiter.source.connect(transmit),
        arbiter.has_room.eq(has_room),
        datagrams.lease.eq(soc.probe.lease.number),
        datagrams.is_held.eq(soc.probe.lease.is_held),
    ]
    for number, port in enumerate(soc.replay_ports):
        soc.comb += [
            datagrams.session[number].eq(port.session),
            datagrams.open[number].eq(port.opens),
            datagrams.close[number].eq(port.closes),
            port.restart.eq(datagrams.restart[number]),
            datagrams.is_restarted[number].eq(port.is_restarted),
            port.written.eq(datagrams.written[number]),
            datagrams.fetched[number].eq(port.fetched),
            datagrams.keeps[number].eq(port.keeps),
            datagrams.frames[number].eq(port.frames),
            datagrams.underruns[number].eq(port.underruns),
            datagrams.first_underrun[number].eq(port.first_underrun),
            datagrams.is_bad[number].eq(port.errors),
            datagrams.is_running[number].eq(port.is_running),
            datagrams.is_starved[number].eq(port.is_starved),
        ]
    soc.add_memory("datagrams", datagrams.bus, SHOWN_BASE + SHOWN_WORDS*config.ports)
    soc.words_as_registers["datagrams"] = count_registers(config.ports)
    return datagrams.source, arbiter.second, 1

def count_registers(ports):
    """Return the registers that the words of the receiver's memory are: where each is in it, words."""
    found = {}
    for number in range(ports):
        found |= {f"port{number}_replay_{name}": COUNTS*number + place for place, name in enumerate(REGISTERS)}
        found |= {f"port{number}_replay_{name}": SHOWN_BASE + SHOWN_WORDS*number + place for name, place in SHOWN.items()}
        found[f"port{number}_replay_strange"] = STRANGE # One for all.
    return found
