# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds the unified header of any frame: walks through its headers word by word, and collects them in a block RAM."""
