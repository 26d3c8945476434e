# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which word of a slot each step of a frame adds to; those of bit errors are steps only where these are counted."""

from liteprobe.cores.formats import BIT_ERRORS, PORT_ACCUMULATORS, STREAM_ACCUMULATORS

PORT_STEPS  = 8               # Words of the port come first.
DELAY_STEPS = [28, 29]        # The delay once more, for the histogram of slot 0; their words (``frames``) only count.
LAST_STEP   = DELAY_STEPS[-1]
TABLES      = (PORT_ACCUMULATORS, {name: place for name, place in STREAM_ACCUMULATORS.items() if name not in BIT_ERRORS})
DAMAGED_STEP, *ERROR_STEPS = [
    step for place in map(STREAM_ACCUMULATORS.get, BIT_ERRORS) for step in range(place.first, place.first + place.words)]

def steps_of(*names):
    """Return the steps of accumulators, which are their words, in their order."""
    places = [table[name] for table in TABLES for name in names if name in table]
    return sorted(step for place in places for step in range(place.first, place.first + place.words))

def lowest_steps_of(*names):
    """Return the steps of the lowest words of accumulators, in their order."""
    return sorted(table[name].first for table in TABLES for name in names if name in table)

def carried_steps():
    """Return the steps of all words but the lowest of each accumulator."""
    places = [place for table in TABLES for place in table.values()]
    return [step for place in places for step in range(place.first + 1, place.first + place.words)]
