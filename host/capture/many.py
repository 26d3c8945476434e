# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Many datagrams by one call of the kernel, `recvmmsg`, which Python's `socket` doesn't have.

Source: recvmmsg(2), and the kernel's include/linux/socket.h.
"""

import ctypes
import errno
import os

import numpy as np
from numpy.typing import NDArray


class _Place(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """struct mmsghdr, and in it struct msghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint),
        ("places", ctypes.POINTER(_Place)),
        ("place_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        # Aligned as what is around it: msghdr is a struct of its own.
        ("_pad", ctypes.c_char * (ctypes.sizeof(ctypes.c_void_p) - ctypes.sizeof(ctypes.c_int))),
        ("length", ctypes.c_uint),
    )


class ManyReader:
    """Reads datagrams into slots that follow one another in memory.

    Parameters
    ----------
    address : int
        Of the first slot.
    slots : int
    size : int
        Octets of a slot: what is longer is cut.

    Attributes
    ----------
    lengths : array of uint32, shape (slots,)
        Octets that came last into each slot.
    """

    def __init__(self, address: int, slots: int, size: int) -> None:
        self._places = (_Place * slots)()
        self._messages = (_Message * slots)()
        for slot, (place, message) in enumerate(zip(self._places, self._messages, strict=True)):
            place.base, place.size = address + slot * size, size
            message.places, message.place_count = ctypes.pointer(place), 1
        stride = ctypes.sizeof(_Message)
        self.lengths: NDArray[np.uint32] = np.ndarray(
            (slots,), np.uint32, memoryview(self._messages).cast("B"), _Message.length.offset, (stride,)
        )
        self._call = ctypes.CDLL(None, use_errno=True).recvmmsg

    def read(self, number: int, slot: int, most: int) -> int:
        """Read what waits at socket ``number``, at most ``most`` datagrams, into slots from ``slot`` on; return how many.

        Raises
        ------
        OSError
            When the kernel refuses.
        """
        first = ctypes.byref(self._messages, slot * ctypes.sizeof(_Message))
        count = int(self._call(number, first, most, _DONT_WAIT, None))
        if count >= 0:
            return count
        error = ctypes.get_errno()
        if error in (errno.EAGAIN, errno.EINTR):
            return 0
        raise OSError(error, os.strerror(error))


# # #

_DONT_WAIT = 0x40  # MSG_DONTWAIT of Linux.
