# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Many probes in one experiment: the plan, and its run."""
