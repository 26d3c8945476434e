# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The command ``liteprobe``: parses, runs and prints; all that it does, a script can do with ``liteprobe.host``."""
