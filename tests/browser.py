"""A headless Chromium for tests, by its DevTools protocol: opens a file, evaluates, types, takes pictures."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.sync.client import ClientConnection, connect

# What a page must not do: throw, complain, or ask anything of a network.
_TROUBLES = ("Runtime.exceptionThrown", "Log.entryAdded", "Network.requestWillBeSent", "Network.loadingFailed")


class Page:
    """One tab. `troubles` holds what the console complained of, and every address that was asked for."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.troubles: list[str] = []
        self._loaded = False

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Send one command and return its result; what the page does meanwhile is written down."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        """Write down what one event tells."""
        method, params = message["method"], message["params"]
        self._loaded |= method == "Page.loadEventFired"
        if method in _TROUBLES:
            url = params.get("request", {}).get("url", "")
            if not url.startswith(("file:", "data:", "about:")) or method != "Network.requestWillBeSent":
                self.troubles.append(url or json.dumps(params)[:500])
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.troubles.append(json.dumps(params["args"])[:500])

    def open(self, path: Path, width: int = 1200, height: int = 900, dark: bool = False, at: str = "") -> None:
        """Open a file in a window of this size, by day or night, and wait until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # Another fragment alone would not load the file again.
        for url in ("about:blank", path.resolve().as_uri() + at):
            self._go(url)

    def _go(self, url: str) -> None:
        """Go to an address and wait for its load event."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        ends = time.monotonic() + 60
        while not self._loaded:
            assert time.monotonic() < ends, f"{url} never loaded"
            self._hear(json.loads(self._socket.recv(timeout=60)))

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys one after another: Tab, Enter, Space, or a letter."""
        special = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Space": (" ", 32, " ")}
        for key in keys:
            name, code, text = special.get(key, (key, ord(key[0].upper()), key))
            for kind in ("keyDown", "keyUp"):
                told = {"text": text} if text and kind == "keyDown" else {}
                self.call("Input.dispat" + "chKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code, **told)

    def picture(self, path: Path, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """Yield a tab of a new headless Chromium; skips the test where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium here: apt install chromium")
    call = [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--hide-scrollbars"]
    call += [f"--user-data-dir={profile}", "--no-first-run", "--disable-extensions", "about:blank"]
    browser = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = _port(profile / "DevToolsActivePort", browser)
        with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            tabs = json.load(answer)
        address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        with connect(address, max_size=None, proxy=None) as socket:
            page = Page(socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            yield page
    finally:
        browser.terminate()
        try:
            browser.wait(20)
        except subprocess.TimeoutExpired:
            browser.kill()
            browser.wait()


def _port(path: Path, browser: subprocess.Popen[bytes]) -> str:
    """Return the port that the browser listens on, once it has written it down."""
    ends = time.monotonic() + 60
    while not path.is_file() or "\n" not in path.read_text():
        assert browser.poll() is None and time.monotonic() < ends, "chromium did not start"
        time.sleep(0.05)
    return path.read_text().split("\n")[0]
