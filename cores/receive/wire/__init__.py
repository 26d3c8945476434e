# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""From the octets of a PHY to words in ``sys``: SFD, FCS, words, one crossing."""
