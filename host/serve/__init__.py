# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Serves a probe for as long as it runs: looks at its meters, offers metrics, disciplines its clock."""
