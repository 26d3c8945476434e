# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames on a port, each on its tick: from a program to octets on the PHY."""
