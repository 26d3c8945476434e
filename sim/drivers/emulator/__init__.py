# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Random networks through the emulator, compiled, beside its reference; and the reference beside the theory of queues."""
