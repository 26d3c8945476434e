# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Gives each student seeds, and so figures, of their own, by their name: ``STUDENT=Ada``, or ``./run labs --student Ada``."""

import os
import zlib

NAME = os.environ.get("STUDENT", "").strip()  # "": the seeds that the labs have, for all.


def seed(number):
    """Return the seed that stands in the place of a lab's own; the same name has the same ones each time."""
    return 1 + zlib.crc32(f"{NAME} {number}".encode()) if NAME else number


def named(results):
    """Return the results of a lab with the student's name before them."""
    return {"student": NAME, **results} if NAME else results
