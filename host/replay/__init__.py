# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams words to a probe by UDP while it sends: prepared, sent and sent again in processes of their own."""
