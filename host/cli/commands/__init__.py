# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of the command line, one a file: ``HELP``, ``add_arguments(parser)``, ``run(args)``, and how results are shown.

Each puts off what takes long to load, so that ``--help`` and a mistyped command are answered at once.
"""
