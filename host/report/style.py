# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Looks of a report: one style sheet for light and dark, wide and narrow; plots take their colours from it."""

STYLE_SHEET = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b2430; --muted: #6a7583; --rule: #d9dee4; --panel: #f4f6f8;
  --series-0: #1f5fa8; --series-1: #c2560a; --series-2: #2c7a3f; --series-3: #7a3e9d; --good: #2c7a3f; --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12171d; --ink: #e4e8ec; --muted: #98a4b1; --rule: #2c3540; --panel: #1a2129;
    --series-0: #79b0ea; --series-1: #f0a35e; --series-2: #84c995; --series-3: #c79ae6; --good: #84c995; --bad: #f2857b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 70rem; padding: 1.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1rem 0 0; }
p { max-width: 46rem; margin: 0.5rem 0; }
.meta { color: var(--muted); font-size: 0.9rem; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 0.75rem; margin: 1.25rem 0; }
.tile { background: var(--panel); border-radius: 8px; padding: 0.75rem 1rem; }
.tile b { display: block; font-size: 1.45rem; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tile span { color: var(--muted); font-size: 0.85rem; line-height: 1.35; display: block; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.75rem; margin-top: 1rem; }
figure { margin: 0; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption { font-size: 0.875rem; color: var(--muted); line-height: 1.45; margin-top: 0.4rem; }
figcaption b { color: var(--ink); }
.scroll { overflow-x: auto; margin: 0.75rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.65rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
th { color: var(--muted); font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td { white-space: normal; }
.note { border-left: 4px solid var(--bad); padding: 0.25rem 0.9rem; background: var(--panel); max-width: 46rem; }
dl { max-width: 46rem; }
dt { font-weight: 600; margin-top: 0.6rem; }
dd { margin: 0; }
code { font-size: 0.9em; overflow-wrap: anywhere; }
pre { background: var(--panel); border-radius: 8px; padding: 0.75rem 1rem; overflow-x: auto; font-size: 0.85rem; }
@media (max-width: 30rem) {
  body { padding: 0.75rem 0.9rem 3rem; font-size: 15px; }
  h1 { font-size: 1.5rem; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .tile b { font-size: 1.15rem; }
}
@media print { body { max-width: none; } figure { break-inside: avoid; } }
"""
