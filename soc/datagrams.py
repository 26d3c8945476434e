# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Adds what fills the rings of ports that replay: a receiver of datagrams, between management port and stack, or of slots.

Stands alone: a test adds it to a stand-in of a probe.
"""

from liteprobe.cores.formats import STATUS_PERIOD_S
from liteprobe.cores.receive.datagrams.counts import COUNTS, STRANGE
from liteprobe.cores.receive.datagrams.receiver import DatagramReceiver
from liteprobe.cores.receive.datagrams.slots import SlotReceiver
from liteprobe.cores.receive.datagrams.status import ERRORS_WORD, FIRST_UNDERRUN_WORD, FRAMES_WORD, SHOWN_WORDS, UNDERRUNS_WORD
from liteprobe.soc.main_ram import burst_port, ring_address

#: Words of a ring's counts that are registers of its port.
REGISTERS = ("accepted", "datagrams", "repeated", "early", "full")
#: Words after the counts of two rings that are registers of its port, too.
SHOWN     = {
    "underruns": UNDERRUNS_WORD, "frames": FRAMES_WORD, "first_underrun": FIRST_UNDERRUN_WORD, "errors": ERRORS_WORD,
}
SHOWN_BASE = 2*COUNTS

def add_datagrams(soc, receive, transmit, has_space):
    """Take datagrams out of ``receive``, and answer on ``transmit`` before all others; return what the stack has in their place.

    Registers ``port<n>_replay_accepted``, ``_datagrams``, ``_repeated``, ``_early``, ``_full`` and ``_strange``, and of the
    replay ``_frames``, ``_underruns``, ``_first_underrun`` and ``_errors``.

    Parameters
    ----------
    soc : ProbeSoC
        With ``replay_ports``, a `RingReaderPort` of each test port.
    receive, transmit, has_space
        As of `ProbeSoC.add_management`.
    """
    config    = soc.probe_config
    datagrams = DatagramReceiver(config.ports, burst_port(soc), ring_address(soc), config.mac_address, config.ip_address,
        int(STATUS_PERIOD_S*soc.sys_clk_freq))
    soc.add_module(name="datagrams", module=datagrams)
    sink = datagrams.join_link(receive, transmit, has_space)
    datagrams.join_lease(soc.probe.lease)
    soc.add_memory("datagrams", datagrams.bus, SHOWN_BASE + SHOWN_WORDS*config.ports)
    soc.words_as_registers["datagrams"] = {}
    for number, port in enumerate(soc.replay_ports):
        datagrams.join_ring(number, port)
        shown = {f"port{number}_replay_{name}": SHOWN_BASE + SHOWN_WORDS*number + place for name, place in SHOWN.items()}
        soc.words_as_registers["datagrams"] |= count_registers(number, COUNTS*number) | shown
    return datagrams.source, sink, 1

def add_slots(soc):
    """Fill the ring of each port that replays from slots in the host's memory, by the DMA reader of its channel.

    Registers as of `add_datagrams`, and ``replay_dma_filled<n>``, ``replay_dma_taken<n>``.
    """
    from liteprobe.cores.receive.datagrams.slot_reader import SlotRegisters # LitePCIe is only needed here.
    dma = SlotRegisters()
    soc.add_module(name="replay_dma", module=dma)
    for number, port in enumerate(soc.replay_ports):
        reader   = soc.capture_dma.channels[number].reader
        receiver = SlotReceiver(number, burst_port(soc), ring_address(soc, number))
        soc.add_module(name=f"port{number}_slots", module=receiver)
        dma.add_csr(number, reader)
        port.add_counters()
        receiver.join_reader(reader)
        receiver.join_ring(0, port)
        receiver.join_lease(soc.probe.lease)
        soc.add_memory(f"port{number}_slots", receiver.bus, 2*COUNTS) # As large as its LUT RAM, or addresses would be others.
        soc.words_as_registers[f"port{number}_slots"] = count_registers(number)

def count_registers(number, first=0):
    """Return the registers that the counts of a port's ring are: where each is in its memory, from word ``first`` on."""
    found = {f"port{number}_replay_{name}": first + place for place, name in enumerate(REGISTERS)}
    found[f"port{number}_replay_strange"] = STRANGE # One for all rings of the memory.
    return found
