"""A headless Chromium for tests of pages."""

import contextlib
import shutil

import pytest


@contextlib.contextmanager
def open_browser(width=1200, height=900):
    """Yield a Selenium driver; skip the test on a machine without Chromium and its driver."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs Chromium: on Debian install chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # Containers forbid Chromium's sandbox, and their /dev/shm is small.
    for argument in (
        "headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "no-first-run",
        "disable-background-networking", "disable-component-update", "disable-sync",
    ):  # fmt: skip
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        # Chromium's window is never narrower than 500 pixels; the emulated screen may be.
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        yield browser
    finally:
        browser.quit()
