# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Model of the host of a test port, from the RFCs."""
