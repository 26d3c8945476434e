# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receives the frames of a port: mac -> stamp -> parse -> measure, record, or filter and capture."""
