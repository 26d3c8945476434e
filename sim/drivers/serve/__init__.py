# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Clients of LiteProbe's servers, and probes for them."""
