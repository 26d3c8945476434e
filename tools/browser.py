# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Opens pages in a headless Chromium, at a width in pixels, to ask and to photograph them: DevTools protocol, by pipes."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

KEYS = {"Tab": 9, "Enter": 13, "ArrowDown": 40}  # Numbers of keys that write nothing.


class Browser:
    """Holds one page of a browser of its own, with an empty profile."""

    def __enter__(self) -> Self:
        if PROGRAM is None:
            raise FileNotFoundError("no chromium is here: apt-get install chromium")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._number, (read_in, self._out), (self._in, write_out) = 0, os.pipe(), os.pipe()
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        # The protocol is on descriptors 3 and 4 of the browser.
        shell = f'exec "$@" 3<&{read_in} 4>&{write_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", PROGRAM, *switches, f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(read_in, write_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(read_in)
        os.close(write_out)
        self._left, self._session = b"", ""
        pages = self._call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in pages if one["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def open(self, url: str, width: int, height: int = 900, *, is_dark: bool = False) -> None:
        """Load a page and wait until it is complete; the window is ``width`` by ``height`` pixels."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=url)
        self.wait("location.href != 'about:blank' && document.readyState == 'complete'")

    def ask(self, expression: str) -> Any:
        """Return what an expression in JavaScript is in the page."""
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression: str, limit_s: float = 30.0) -> Any:
        """Return what an expression is as soon as it is true; raises TimeoutError after ``limit_s``."""
        end_s = time.monotonic() + limit_s
        while not (found := self.ask(expression)):
            if time.monotonic() > end_s:
                raise TimeoutError(f"not so after {limit_s:g} s: {expression}")
            time.sleep(0.05)
        return found

    def before(self, script: str) -> None:
        """Have a script run before those of each page that is opened from now on."""
        self._call("Page.enable")
        self._call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def heap_mb(self) -> float:
        """Return the memory that the scripts of the page still need (MB), after a collection."""
        self._call("HeapProfiler.collectGarbage")
        return float(self._call("Runtime.getHeapUsage")["usedSize"]) / 1e6

    def key(self, name: str, text: str = "") -> None:
        """Press a key and let it go, as a person does; ``text``: what it writes."""
        for kind in ("keyDown", "keyUp"):
            written = {"text": text} if text and kind == "keyDown" else {}
            self._call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode=KEYS.get(name, 0),
                **written,
            )

    def picture(self, file: Path, *, is_whole: bool = False, scale: float = 1.0) -> None:
        """Write what the window shows, or the whole page, as PNG."""
        size = "[innerWidth, innerHeight]" if not is_whole else "[innerWidth, document.documentElement.scrollHeight]"
        width, height = self.ask(size)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        found = self._call("Page.captureScreenshot", clip=clip, captureBeyondViewport=is_whole)
        file.write_bytes(base64.b64decode(found["data"]))

    # # #

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._left:
                if not (more := os.read(self._in, 1 << 20)):
                    raise ConnectionError("the browser has ended")
                self._left += more
            line, _, self._left = self._left.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
