# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Decodes what a capture sends: blocks to records, and the fields of their headers."""
