# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Asks what listens at an address whether it takes keys: libzmq doesn't say why a handshake ended."""

import socket

SIGNATURE = b"\xff" + bytes(8) + b"\x7f"
MAJOR = 3
MECHANISM = slice(12, 32)
TIME_S = 1.0


def mechanism_at(host: str, port: int) -> str | None:
    """Return the security mechanism of a ZeroMQ socket, such as "CURVE" or "NULL"; None: it is not one, or doesn't say.

    Source: ZMTP 3.1 (ZeroMQ RFC 37), greeting: each end says its mechanism, whatever that of the other is.
    """
    greeting = b""
    try:
        with socket.create_connection((host.strip("[]"), port), TIME_S) as stream:
            stream.settimeout(TIME_S)
            stream.sendall(SIGNATURE + bytes([MAJOR]))
            while len(greeting) < MECHANISM.stop and (octets := stream.recv(MECHANISM.stop - len(greeting))):
                greeting += octets
    except OSError:
        return None
    if len(greeting) < MECHANISM.stop or (greeting[0], greeting[9]) != (SIGNATURE[0], SIGNATURE[9]):
        return None
    return greeting[MECHANISM].rstrip(b"\0").decode("ascii", "replace")
