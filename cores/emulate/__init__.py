# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Emulates a degraded network between two ports: it decides what becomes of each frame, holds it, and lets it leave."""
