"""A browser without a window, driven by the protocol of WebDriver, and servers on the loopback; both end with their block."""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
MISSING = None if CHROMIUM and DRIVER else "no chromium with its chromedriver is installed (on Debian: apt-get install chromium chromium-driver)"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1300,900"]
LIMIT = 60.0  # seconds for each thing that is waited for


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(what, question, limit=LIMIT):
    """The first answer that is true; TimeoutError after the limit."""
    end = time.monotonic() + limit
    while not (answer := question()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: nothing after {limit} s")
        time.sleep(0.1)
    return answer


@contextlib.contextmanager
def server(command, url):
    """A process that answers at an address; it and its children are ended with the block."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

        def answers():
            if process.poll() is not None:
                output.seek(0)
                raise RuntimeError(f"{command[0]} ended with {process.returncode}: {output.read().decode(errors='replace')[-2000:]}")
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status == 200

        try:
            wait_for(command[0], answers)
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


class Browser:
    """One window."""

    def __init__(self, address):
        self.address = address

    def ask(self, method, path, **body):
        """The value that the driver answers; RuntimeError with its message for an error."""
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.ask("POST", "/url", url=url)

    def run(self, script, *args):
        """What a script returns."""
        return self.ask("POST", "/execute/sync", script=script, args=list(args))

    def click(self, selector, double=False):
        """Click where an element stands, as a mouse does."""
        place = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": self.ask("POST", "/element", using="css selector", value=selector)}
        once = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.ask("POST", "/actions", actions=[{"type": "pointer", "id": "mouse", "actions": [place, *once * (1 + double)]}])

    def screenshot(self):
        """The PNG of the window."""
        return base64.b64decode(self.ask("GET", "/screenshot"))

    def messages(self):
        """What the console says of errors."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", type="browser") if entry["level"] == "SEVERE"]


@contextlib.contextmanager
def browser():
    """A new window of a browser that remembers nothing."""
    port = free_port()
    with tempfile.TemporaryDirectory() as profile, server([DRIVER, f"--port={port}"], f"http://127.0.0.1:{port}/status"):
        options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={profile}/data"]}
        window = Browser(f"http://127.0.0.1:{port}")
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = window.ask("POST", "/session", capabilities={"alwaysMatch": wanted})
        window.address += f"/session/{session['sessionId']}"
        try:
            yield window
        finally:
            window.ask("DELETE", "")
