# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Drivers of the memory system: burst ports, the bus, and a chip that knows its times."""
