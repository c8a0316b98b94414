"""A headless Chromium, driven through its debugging protocol over a pair of pipes: no driver, no
web socket, no port."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

LIMIT = 20.0  # s; nothing here takes that long, unless it never comes
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--mute-audio", "--remote-debugging-pipe"),
)


def find_browser() -> str | None:
    """The path of a Chromium: $CHROMIUM, or one of its usual names."""
    given = os.environ.get("CHROMIUM")
    return given or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one tab. Every wait ends with the browser's answer, or with its end."""

    def __init__(self, folder: Path, browser: str) -> None:
        to_child, self._to = os.pipe()
        self._from, from_child = os.pipe()
        command = [browser, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        # It reads file descriptor 3 and writes 4. `exec` in a shell puts them there.
        shell = f'exec "$@" 3<&{to_child} 4>&{from_child}'
        with (folder.parent / "chromium.log").open("w") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", shell, "bash", *command],
                pass_fds=(to_child, from_child),
                stdout=log,
                stderr=log,
            )
        os.close(to_child)
        os.close(from_child)
        self._reader = os.fdopen(self._from, "rb")
        self._rest = b""
        self._number = 0
        self._session = ""
        self.console: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._to)
        self._process.terminate()
        self._process.wait(30)
        self._reader.close()

    def call(self, method: str, **parameters: Any) -> Any:
        """One command, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._from, 1 << 16)
            if not data:
                raise RuntimeError("the browser has ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(line)
        parameters = message.get("params", {})
        broken = parameters.get("entry", {}).get("source") == "network"  # as tests break it
        if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded") and not broken:
            self.console.append(json.dumps(parameters))
        return message

    # What a test does.

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, condition: str) -> Any:
        """The value of an expression as soon as it is true; fails if it never is."""
        return self.evaluate(
            f"new Promise((done, fail) => {{ const begun = Date.now();"
            f" const look = () => {{ const found = ({condition}); if (found) done(found);"
            f" else if (Date.now() - begun > {LIMIT * 1e3}) fail('waited {LIMIT} s');"
            " else setTimeout(look, 20); }; look(); })"
        )

    def screen(self, width: int, height: int, dark: bool = False) -> None:
        """Size of the screen, and which of the two looks is wanted."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path, whole: bool = False) -> None:
        """A screenshot as PNG; ``whole``: also what is below the screen's edge."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(answer["data"]))
