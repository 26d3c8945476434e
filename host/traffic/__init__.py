# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What is sent, as pure data: headers, trains, programs."""
