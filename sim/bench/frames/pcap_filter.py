# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which frames an expression holds for in libpcap, which is what tcpdump asks: an independent witness of filters.

Source: pcap(3PCAP): pcap_open_dead, pcap_compile, pcap_offline_filter.
"""

import ctypes
import ctypes.util
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

LINK_ETHERNET = 1
SNAP_LENGTH = 262144
OPTIMIZE = 1
NETMASK_UNKNOWN = 0xFFFFFFFF


class Program(ctypes.Structure):
    """A bpf_program."""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


class PacketHeader(ctypes.Structure):
    """A pcap_pkthdr."""

    _fields_ = (
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("kept", ctypes.c_uint32),
        ("length", ctypes.c_uint32),
    )


@cache
def library() -> ctypes.CDLL:
    """Return libpcap; tshark needs it, too."""
    found = ctypes.CDLL(ctypes.util.find_library("pcap") or "libpcap.so.0.8")
    found.pcap_open_dead.restype = ctypes.c_void_p
    found.pcap_geterr.restype = ctypes.c_char_p
    found.pcap_lib_version.restype = ctypes.c_char_p
    found.pcap_geterr.argtypes = [ctypes.c_void_p]
    found.pcap_close.argtypes = [ctypes.c_void_p]
    found.pcap_compile.argtypes = [
        *(ctypes.c_void_p, ctypes.POINTER(Program), ctypes.c_char_p),
        *(ctypes.c_int, ctypes.c_uint32),
    ]
    found.pcap_offline_filter.argtypes = [ctypes.POINTER(Program), ctypes.POINTER(PacketHeader), ctypes.c_char_p]
    found.pcap_freecode.argtypes = [ctypes.POINTER(Program)]
    return found


def matches(expression: str, frames: Sequence[bytes]) -> NDArray[np.bool_]:
    """Return which frames an expression holds for.

    Raises
    ------
    ValueError
        If libpcap refuses it.
    """
    pcap, program = library(), Program()
    handle = pcap.pcap_open_dead(LINK_ETHERNET, SNAP_LENGTH)
    try:
        if pcap.pcap_compile(handle, program, expression.encode(), OPTIMIZE, NETMASK_UNKNOWN):
            error = pcap.pcap_geterr(handle).decode()
            if error == "expression rejects all packets":
                return np.zeros(len(frames), np.bool_)
            raise ValueError(f"'{expression}': {error}")
        try:
            header, found = PacketHeader(), np.zeros(len(frames), np.bool_)
            for number, frame in enumerate(frames):
                header.kept = header.length = len(frame)
                found[number] = bool(pcap.pcap_offline_filter(program, header, frame))
            return found
        finally:
            pcap.pcap_freecode(program)
    finally:
        pcap.pcap_close(handle)
