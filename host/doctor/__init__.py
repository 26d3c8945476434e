# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Looks at a machine: what LiteProbe needs of it, what is there, and what to do about what isn't."""
