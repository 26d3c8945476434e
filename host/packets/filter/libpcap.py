# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Filters the octets of frames by libpcap itself, which is what tcpdump asks.

Source: pcap(3PCAP): pcap_open_dead, pcap_compile; bpf_filter of libpcap's pcap/bpf.h.
"""

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.filter.words import numbered
from liteprobe.host.packets.frames import WORD_OCTETS, starts

NAMES = ("libpcap.so.0.8", "libpcap.so.1", "libpcap.dylib")  # Debian's, Fedora's, that of macOS.
LINK_ETHERNET = 1
SNAP_LENGTH = 262144
OPTIMIZE = 1
NETMASK_UNKNOWN = 0xFFFFFFFF
INSTRUCTION_OCTETS = 8
REFUSED = " is refused by libpcap: "
REJECTS_ALL = "expression rejects all packets"
ACCEPT_NONE = (6).to_bytes(2, "little") + bytes(6)  # ret #0.


class Program(ctypes.Structure):
    """A bpf_program."""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


@cache
def library() -> ctypes.CDLL:
    """Return libpcap; UsageError when it isn't installed."""
    for name in NAMES:
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.pcap_open_dead.restype = ctypes.c_void_p
        found.pcap_geterr.restype = ctypes.c_char_p
        found.pcap_geterr.argtypes = found.pcap_close.argtypes = [ctypes.c_void_p]
        found.pcap_compile.argtypes = [
            *(ctypes.c_void_p, ctypes.POINTER(Program), ctypes.c_char_p),
            *(ctypes.c_int, ctypes.c_uint32),
        ]
        found.pcap_freecode.argtypes = [ctypes.POINTER(Program)]
        found.bpf_filter.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        found.bpf_filter.restype = ctypes.c_uint
        return found
    raise UsageError("--host-filter needs libpcap: install it (Debian: libpcap0.8), or leave --host-filter out")


def compiled(expression: str) -> bytes:
    """Return the instructions that libpcap makes of an expression for Ethernet.

    Raises UsageError if libpcap refuses it, with its reason; or isn't installed.
    """
    pcap, program, text = library(), Program(), numbered(expression).encode()
    handle = pcap.pcap_open_dead(LINK_ETHERNET, SNAP_LENGTH)
    try:
        if pcap.pcap_compile(handle, program, text, OPTIMIZE, NETMASK_UNKNOWN):
            error = pcap.pcap_geterr(handle).decode()
            if error == REJECTS_ALL:
                return ACCEPT_NONE
            raise UsageError(f"'{expression}'{REFUSED}{error}")
        found = ctypes.string_at(program.instructions, INSTRUCTION_OCTETS * program.length)
        pcap.pcap_freecode(program)
        return found
    finally:
        pcap.pcap_close(handle)


def refusal(expression: str) -> str | None:
    """Return why libpcap refuses an expression, "" where it doesn't say or isn't installed; None: it takes it."""
    try:
        compiled(expression)
    except UsageError as error:
        reason = str(error).partition(REFUSED)[2]
        return "" if "syntax error" in reason else reason
    return None


class FrameFilter:
    """Tells which frames an expression holds for that libpcap has compiled; ``instructions``: of `compiled`."""

    def __init__(self, instructions: bytes) -> None:
        self._instructions = ctypes.create_string_buffer(instructions)
        #: Frames of batches that were shorter than on the wire (a snap length) when libpcap looked at them.
        self.cut = 0

    def __call__(self, batch: Batch) -> NDArray[np.bool_]:
        """Return which records match; gaps don't.

        Raises UsageError if the frames came without octets.
        """
        captured, lengths = batch.snap_length, np.where(batch.is_gap, 0, batch.heads["length"])
        if lengths.any() and not captured.any():
            raise UsageError(
                "--host-filter looks at the octets of frames, and these came with headers alone: leave it out, or "
                "capture with --keep both"
            )
        self.cut += int(np.count_nonzero(captured < lengths))
        found = self.matches(batch.words.view(np.uint8), WORD_OCTETS * batch.octets_at, captured, lengths)
        return np.asarray(found & ~batch.is_gap)

    def matches(
        self, octets: NDArray[np.uint8], at: NDArray[np.int64], captured: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which frames match: each lies at ``at`` in ``octets``, ``captured`` octets of ``lengths`` on the wire."""
        run, instructions = library().bpf_filter, ctypes.addressof(self._instructions)
        places = (at + octets.ctypes.data).tolist()
        found = [
            run(instructions, place, length, size)
            for place, length, size in zip(places, lengths.tolist(), captured.tolist(), strict=True)
        ]
        return np.array(found, np.uint32).astype(bool)


def matches(expression: str, frames: Sequence[bytes]) -> NDArray[np.bool_]:
    """Return which whole frames an expression holds for; raises as `compiled`."""
    lengths = np.array([len(frame) for frame in frames], np.int64)
    octets = np.frombuffer(b"".join(frames) or b"\0", np.uint8)
    return FrameFilter(compiled(expression)).matches(octets, starts(lengths), lengths, lengths)
