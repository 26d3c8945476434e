# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps results of months in Parquet files, where DuckDB, Polars and pandas find them; docs/store.md."""
