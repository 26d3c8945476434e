# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The probe as a device: links to it, its registers and time, who holds it, its firmware."""
