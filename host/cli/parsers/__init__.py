# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What each command takes, a file a command: ``HELP`` and ``add_arguments(parser)``.

Nothing here imports what takes long to load, so that ``--help`` and a mistyped command are answered at once.
"""
