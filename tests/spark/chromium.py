"""Debian's chromium, headless, by its own driver: nothing is downloaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service


@contextmanager
def chromium(home: Path, width: int) -> Iterator[Chrome]:
    """Give a window of so many pixels, whose logs are kept; skips the test where there is no browser."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no chromium with its driver here; on Debian: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", f"user-data-dir={home}"):
        options.add_argument(f"--{argument}")  # without the sandbox root may run it; the page is our own
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    window = Chrome(options, Service(driver))
    try:
        size = {"width": width, "height": 1500, "deviceScaleFactor": 1, "mobile": width < 500}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        yield window
    finally:
        window.quit()


def asked_for(window: Chrome, page: str) -> list[str]:
    """Return the addresses that were asked for on behalf of a page, its own first."""
    events = [json.loads(entry["message"])["message"] for entry in window.get_log("performance")]
    requests = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [request["request"]["url"] for request in requests if request["documentURL"] == page]
