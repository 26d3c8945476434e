# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Declares the layouts between a port's path, its matcher and the tables."""

# Feed ---------------------------------------------------------------------------------------------

def row_layout():
    """A row of a table of addresses. What is below the line comes a cycle later."""
    return [
        ("is_ipv4", 1),
        ("is_used", 1),
        # -----------
        ("terms",   8),
        ("names",   1),
        ("channel", 3),
    ]

def feed_layout():
    """Return the fields that the tables show to all matchers, a part of them a cycle."""
    return [
        ("source",      row_layout()),
        ("destination", row_layout()),
        ("compared", 5), # Number of the rows; the same a cycle later, with what comes then.
        ("number",   5),
        ("term",    3), # Number of a term and its word.
        ("word",   32),
        ("step",    4), # Of the limits of MACs; the limit comes a cycle later.
        ("limit",  16),
        ("asks",   32), # Four bits a term: its conditions of source and destination address.
        ("asked",   1), # A term is enabled.
        ("enable",  1),
        ("drop",    1),
    ]

# Access -------------------------------------------------------------------------------------------

def access_layout():
    """A word that the bus reads or writes."""
    return [
        ("address", 13),
        ("data",    32),
        ("write",    1), # In this cycle.
    ]

def slot_layout():
    """Whose turn the shared memories are in, a cycle each.

    In each group of four cycles each kind comes once: 0 and 1 are lookups of port 0 and 1, and hits of the source and the
    destination row that passes; 2 is hits of terms; 3 the bus's. From lap to lap a row meets another kind.
    """
    return [
        ("number", 5), # Of the row whose hits are there.
        ("kind",   2),
    ]
