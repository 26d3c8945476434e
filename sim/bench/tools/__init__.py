# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What benches are built and run with: compilers, proofs, processes."""
