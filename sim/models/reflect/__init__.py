# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What the host of a test port should do, from the RFCs."""
