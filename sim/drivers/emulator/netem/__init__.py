# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""netem of a user-mode kernel, measured from inside of it."""
