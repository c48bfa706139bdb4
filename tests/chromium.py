"""Chromium, driven for tests and benchmarks: no network, a profile of its own, everything logged."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
)


def browser_paths():
    """Return the paths of the browser and its driver, each None if it is not there."""
    driver = os.environ.get("CHROMEWEBDRIVER")  # a folder, set by continuous integration of GitHub
    found = shutil.which("chromedriver") or (driver and shutil.which("chromedriver", path=driver))
    return next(filter(None, map(shutil.which, BROWSERS)), None), found


@contextmanager
def started(width=1300, height=900, dark=False):
    """Yield a driver of a new browser with a window of this size; ``driver.downloads`` is a folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    browser, program = browser_paths()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        downloads = Path(folder, "downloads")
        downloads.mkdir()
        options = Options()
        options.binary_location = browser
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        for flag in (*FLAGS, *root, f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        driver = webdriver.Chrome(options=options, service=Service(program))
        try:
            driver.downloads = downloads
            resize(driver, width, height)
            emulate(driver, "prefers-color-scheme", "dark" if dark else "light")
            yield driver
        finally:
            driver.quit()


def resize(driver, width, height):
    """Give the window another size; a narrow one is that of a phone."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def emulate(driver, feature, value):
    """Let the pages of a browser see a setting of the user, such as a dark theme."""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": feature, "value": value}]})


def complaints(driver):
    """Return what went wrong since the last call: messages of the console, and requests to anywhere."""
    found = [entry["message"] for entry in driver.get_log("browser")]
    for entry in driver.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            address, by = event["params"]["request"]["url"], event["params"]["documentURL"]
            # The page itself and downloads from its memory are no requests, nor is the browser's first page.
            if not address.startswith(("file:", "blob:null")) and not by.startswith(("chrome:", "data:,")):
                found.append(f"request of {address}")
        elif event["method"] == "Network.webSocketCreated":
            found.append(f"connection to {event['params']['url']}")
    return found
