# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Assigns signals of one part to those of the same names in another."""

def copied(to, from_, *names):
    """Return the assignments of all ``names``, in their order."""
    return [getattr(to, name).eq(getattr(from_, name)) for name in names]
