# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Answers what a test port is asked as a host: ARP, neighbour discovery, ping and STAMP."""
