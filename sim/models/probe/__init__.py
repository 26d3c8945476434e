# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Models of probes as their registers show them: the truth for tests of the host."""
