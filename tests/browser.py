"""A headless Chromium for tests of pages."""

import contextlib
import shutil

import pytest


@contextlib.contextmanager
def open_browser():
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
        resize(browser)
        yield browser
    finally:
        browser.quit()


def resize(browser, width=1200):
    """Emulate a screen; Chromium's window is never narrower than 500 pixels."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
