# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which of two banks of a memory is counted in, and which one is shown."""

from migen import *

from litex.gen import *

# Banks --------------------------------------------------------------------------------------------

class Banks(LiteXModule):
    """Keeps a snapshot of groups of words without copying it.

    What is shown of a group is in one bank; whoever counts reads the group's words wherever they are, and writes all of them
    into the other one. So to take a snapshot of all groups is to show, from this cycle on, whichever bank each was written to
    last; and to forget all is to say that none has been written.

    Parameters
    ----------
    groups : int

    Attributes
    ----------
    group : Signal, in
        The one that is counted in.
    read_bank, write_bank : Signal(), out
        Where its words are, and where they must be written to; a cycle after ``group``.
    is_fresh : Signal(), out
        It has no words yet: they count as 0; a cycle after ``group``.
    done : Signal(), in
        One cycle, in which ``group`` has stood for two: all its words have been written, or soon will be.
    take : Signal(), in
        One cycle, in which no group is half written: the snapshot.
    clear : Signal(), in
        One cycle: forgets all but the snapshot.
    shown : Signal, in
        The group that is looked at.
    shown_bank, shown_fresh : Signal(), out
        Where its words are, and whether they count as 0, in the same cycle.
    """
    def __init__(self, groups):
        self.group       = Signal(max=max(groups, 2))
        self.read_bank   = Signal()
        self.write_bank  = Signal()
        self.is_fresh    = Signal(reset=1)
        self.done        = Signal()
        self.take        = Signal()
        self.clear       = Signal()
        self.shown       = Signal(max=max(groups, 2))
        self.shown_bank  = Signal()
        self.shown_fresh = Signal()

        # # #

        # Bank of the words, and of those that are shown.
        live  = Signal(groups)
        shown = Signal(groups)
        # There are any.
        seen  = Signal(groups)
        shows = Signal(groups)
        def of(word, group):
            return Array(word[n] for n in range(groups))[group]
        self.sync += [
            self.read_bank.eq( of(live,  self.group)),
            self.write_bank.eq(~of(shown, self.group)),
            self.is_fresh.eq(  ~of(seen,  self.group)),
            [If(self.done & (self.group == n), live[n].eq(self.write_bank), seen[n].eq(1)) for n in range(groups)],
            If(self.take,  shown.eq(live), shows.eq(seen)),
            If(self.clear, seen.eq(0)),
        ]
        self.comb += [
            self.shown_bank.eq( of(shown, self.shown)),
            self.shown_fresh.eq(~of(shows, self.shown)),
        ]
