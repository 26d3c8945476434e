# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Models of what ports make of the frames that come."""
