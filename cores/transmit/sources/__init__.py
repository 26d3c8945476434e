# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a port sends: a source says which frames, and when each is due."""
