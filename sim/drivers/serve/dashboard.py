# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Asks of the shipped dashboard what Grafana would ask: its queries, of Debian's Prometheus, and its JSON, of Grafana's own types.

Grafana itself is in no package registry under a licence that this project runs. Its npm package @grafana/schema is: the types
of a dashboard, of panels and of their options, which the TypeScript compiler holds the JSON against.
"""

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "liteprobe.json").read_text())
QUERIES: dict[str, list[str]] = {
    panel["title"]: [one["expr"] for one in panel["targets"]] for panel in DASHBOARD["panels"]
}
SCHEMA = ("@grafana/schema@13.2.3", "typescript@5.9.3")
OPTIONS = ("--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler", "--module", "esnext", "--target", "es2022")
TYPES = "./node_modules/@grafana/schema/dist/types/raw/composable"
#: What a query of Prometheus has beyond Grafana's DataQuery, for which the package has no types; and a panel of known options.
CHECKED = """\
import type { Dashboard, DataQuery, Panel, VariableModel } from '@grafana/schema';
interface Query extends DataQuery { expr: string; legendFormat?: string; format?: 'heatmap' | 'table' | 'time_series' }
type Only<O, F> = Omit<Panel<Record<string, unknown>, F>, 'options' | 'targets'> & { options: Partial<O>; targets: Query[] };
"""


@contextmanager
def prometheus(folder: Path, ports: Sequence[int], interval: str = "250ms") -> Iterator[str]:
    """Have Debian's Prometheus, with the shipped rules, scrape these TCP ports of this machine; give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = {"job_name": "liteprobe", "static_configs": [{"targets": [f"127.0.0.1:{one}" for one in ports]}]}
    settings = {"global": {"scrape_interval": interval, "evaluation_interval": interval, "scrape_timeout": "200ms"}}
    (folder / "p.yml").write_text(
        json.dumps(settings | {"rule_files": [str(FOLDER / "rules.yml")], "scrape_configs": [job]})
    )
    command = ["prometheus", f"--config.file={folder / 'p.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=log, stdout=log)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def answered(url: str, query: str, instance: str = ".*") -> list[Any]:
    """Return what a Prometheus answers to a query of a panel, but NaN; nothing where it does not answer at all."""
    asked = urllib.parse.urlencode({"query": query.replace("$instance", instance)})
    try:
        found = json.load(urllib.request.urlopen(f"{url}/api/v1/query?{asked}", timeout=5))
    except OSError:
        return []
    assert found["status"] == "success", (query, found)
    return [one for one in found["data"]["result"] if one["value"][1] != "NaN"]


def typed(dashboard: dict[str, Any]) -> str:
    """Return a dashboard as TypeScript: itself, its variables, and each panel with the options of its kind."""
    plain = {name: value for name, value in dashboard.items() if name not in ("panels", "templating")}
    kinds = sorted({panel["type"] for panel in dashboard["panels"]})
    if unknown := [kind for kind in kinds if not re.fullmatch("[a-z]+", kind)]:
        raise ValueError(f"{unknown[0]} is not a kind of panel that is checked here")
    lines = [
        f"import type {{ Options as O{kind}, FieldConfig as F{kind} }} from '{TYPES}/{kind}/panelcfg/x/types.gen';"
        for kind in kinds
    ]
    lines += [CHECKED, f"export const dashboard: Dashboard = {json.dumps(plain)};"]
    lines += [f"export const variables: VariableModel[] = {json.dumps(dashboard['templating']['list'])};"]
    for number, panel in enumerate(dashboard["panels"]):
        kind = panel["type"]
        lines.append(f"export const panel{number}: Only<O{kind}, F{kind}> = {json.dumps(panel)};")
    return "\n".join(lines)


def schema_errors(folder: Path, dashboard: dict[str, Any]) -> list[str] | None:
    """Return what the compiler finds wrong in a dashboard by Grafana's types; None: npm or a registry is not here."""
    if not (folder / "node_modules" / "typescript").is_dir():
        if shutil.which("npm") is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text("{}")
        done = subprocess.run(
            ["npm", "install", "--ignore-scripts", "--no-audit", *SCHEMA], cwd=folder, capture_output=True, check=False
        )
        if done.returncode:
            return None
    (folder / "check.ts").write_text(typed(dashboard))
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    checked = subprocess.run(["node", compiler, *OPTIONS, "check.ts"], cwd=folder, capture_output=True, text=True, check=False)
    return checked.stdout.splitlines() if checked.returncode else []
