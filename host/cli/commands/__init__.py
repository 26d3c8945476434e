# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of the command line, one a file: each runs what its arguments say, and prints."""
