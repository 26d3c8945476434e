# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A computer around a probe in its slot."""
