# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The lease of a probe, and the order of requests under it.

The four octets that Etherbone's packet header leaves to padding (4 to 7, big-endian) hold the number of the lease (31:16)
and the order of the request under this lease (15:0). All 0 is a request of a host that knows of no leases. In an answer
they hold the number of the present lease and the order of the last request whose writes were done.
"""

LEASE_NAME_WORDS = 16
LEASE_UNIT_BITS = 20  # Times of a lease are in 2^20 cycles of ``sys``.
ORDER_BITS = 16
ORDERS = 2**ORDER_BITS
