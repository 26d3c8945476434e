# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A degraded network between two ports: what becomes of each frame, where it waits, when it leaves."""
