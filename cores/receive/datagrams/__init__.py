# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receives what a host streams, by UDP or by DMA, and writes it to rings in the memory."""
