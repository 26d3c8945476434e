# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The registers of a transmit port (docs/design/interfaces.md, ``port<n>_tx``)."""

from migen import *

from litex.gen import *
from litex.soc.interconnect.csr import *

from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.formats import STREAMS
from liteprobe.cores.transmit.frames import program_layout

PROGRAM = {
    "length":            "Bytes of a frame, without FCS (60 to 9000).",
    "count":             "Frames of a train, from 1.",
    "repeats":           "Trains, from 1.",
    "interval_ticks":    "Ticks from start to start; 0 with a fraction of 0 is back to back.",
    "interval_fraction": "Of the interval, 2^-32 ticks.",
    "gap_ticks":         "Ticks between the slot of a train's last frame and the next head.",
    "start_time":        "Time of the first SFD (ns), where timed.",
    "timed":             "Wait for start_time after the start.",
    "fill":              "0 zero, 1 counting, 2 PRBS-31.",
    "payload_offset":    "Byte offset of the UDP payload.",
    "checksum_enable":   "Write the checksum complement into the last two octets.",
    "checksum_seed":     "One's complement sum of pseudo-header and UDP header.",
}

STROBES = {
    "arm":   "Write: take the program and build its first frames; ignored unless idle.",
    "stop":  "Write: end after the present frame.",
    "clear": "Write: clear the counters.",
}

STATUS = {
    "state":              "0 idle, 1 armed, 2 ready, 3 waiting for start_time, 4 running.",
    "sent":               "Frames of this program whose SFD has left.",
    "late":               "Frames that started after their tick.",
    "first_late":         "Sequence of the first late frame; 0xffffffff: none.",
    "underruns":          "Frames cut because an octet was not there in time.",
    "management_sent":    "Management frames that started.",
    "management_held":    "Of these, frames that had to wait for a program.",
    "management_dropped": "Management frames that found no room while waiting.",
    "link_up":            "The PHY's link is up.",
    "disturbed":          "Writes to the program or its header while it ran: what it sent is not to be trusted.",
}

STREAM_SETTINGS = {
    "streams_mask": (STREAMS, "Streams that streams_arm begins, bit n is stream n."),
    "streams_hold": (1, "The program goes on when no stream has frames any more, until stop."),
}

STREAM_STROBES = {
    "streams_begin": "Write: begin these streams while the program runs.",
    "streams_end":   "Write: end these streams while the program runs.",
}

FORWARD_STATUS = ("state", "sent", "late", "underruns", "link_up")
MANAGEMENT     = ("management_sent", "management_held", "management_dropped")

def add_forward_registers(path):
    """Give a TransmitPath that forwards its registers: what begins is said elsewhere."""
    stop = CSRStorage(1, name="stop", description=STROBES["stop"])
    path._stop = stop
    path.comb += path.stop.eq(stop.re)
    add_status(path, (*FORWARD_STATUS[:-1], *MANAGEMENT * hasattr(path, "management"), FORWARD_STATUS[-1]))

def add_status(path, names):
    """Give a path registers of what it says of itself."""
    for name in names:
        signal   = getattr(path, name)
        register = CSRStatus(len(signal), name=name, description=STATUS[name])
        setattr(path, f"_{name}", register)
        path.comb += register.status.eq(signal)

def add_stream_registers(path):
    """Give a TransmitPath the registers of its streams."""
    for name, (width, description) in STREAM_SETTINGS.items():
        register = WriteOnlyCSR(width, name=name, description=description)
        setattr(path, f"_{name}", register)
        path.comb += getattr(path, name).eq(register.storage)
    register = CSRStorage(1, name="streams_arm",
        description="Write: begin the streams of streams_mask, as arm a train; ignored unless idle.")
    path._streams_arm = register
    path.comb += path.streams_arm.eq(register.re)
    for name, description in STREAM_STROBES.items():
        register = CSRStorage(STREAMS, name=name, description=description)
        setattr(path, f"_{name}", register)
        path.comb += If(register.re, getattr(path, name).eq(register.storage))
    register = CSRStatus(STREAMS, name="streams_active", description="Streams that have frames left, bit n is stream n.")
    path._streams_active = register
    path.comb += register.status.eq(path.streams_active)

def add_registers(path):
    """Give a TransmitPath its registers, in the order of the contract."""
    for name, width in program_layout:
        register = WriteOnlyCSR(width, name=name, description=PROGRAM[name])
        setattr(path, f"_{name}", register)
        path.comb += getattr(path.program, name).eq(register.storage)
    settings = [getattr(path, f"_{name}") for name, _ in program_layout]
    path.comb += path.program_write.eq(Reduce("OR", [register.is_written for register in settings]))
    attached = WriteOnlyCSR(1, name="attached", description="The program ends with the lease of the host that started it.")
    path._attached = attached
    ends = {"stop": path.lease_ended & attached.storage}
    for name, description in STROBES.items():
        register = CSRStorage(1, name=name, description=description)
        setattr(path, f"_{name}", register)
        path.comb += getattr(path, name).eq(register.re | ends.get(name, 0))
    add_status(path, STATUS)
