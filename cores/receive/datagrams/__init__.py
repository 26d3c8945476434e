# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a host streams by UDP, taken out of the frames for the management stack and written to rings."""
