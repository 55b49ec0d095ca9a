"""The report in a real browser: light and dark, on a desk and on a phone, by keyboard, and what axe says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.capabilities import POSIX, needs
from torchbuild_tasks.features.report.verb import make_report

pytestmark = [
    pytest.mark.integration,
    needs(POSIX and shutil.which("ninja") is not None, "ninja"),
    needs(POSIX and shutil.which("chromium") is not None, "chromium"),
    needs(POSIX and shutil.which("chromedriver") is not None, "chromedriver"),
]
# Chromium's sandbox refuses root. The rest keeps it from asking its maker's servers for anything.
SWITCHES: Final = (
    *("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
    *(["--no-sandbox"] if POSIX and os.geteuid() == 0 else []),
)
PHONE, DESK = (390, 844), (1280, 900)  # CSS pixels
LONG: Final = "third_party/" + "a_folder_of_a_name_that_no_screen_is_wide_enough_for/" * 4 + "kernel.cu.o"
MARKUP: Final = "<img_src=x_onerror=alert(1)>.h"
RULES: Final = f"""rule step
  command = mkdir -p $$(dirname $out) && sleep $time && touch $out
build gen/{MARKUP}: step
  time = 0.05
build {LONG}: step || gen/{MARKUP}
  time = 0.30
build x.dir/short.cpp.o: step || gen/{MARKUP}
  time = 0.10
build lib/libx.so: step {LONG} x.dir/short.cpp.o
  time = 0.02
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    build = root / "build"
    build.mkdir()
    (build / "build.ninja").write_text(RULES, "utf-8")
    subprocess.run(["ninja", "-j2"], cwd=build, check=True, capture_output=True)
    return make_report(root, build, out=root / "page.html", trace=None).page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    profile = tmp_path_factory.mktemp("profile")
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def show(browser: Any, page: Path, *, scheme: str = "light", size: tuple[int, int] = DESK) -> None:
    preference = {"name": "prefers-color-scheme", "value": scheme}
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == PHONE}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [preference]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_everyone_can_read_it(browser: Any, page: Path, scheme: str, size: tuple[int, int]) -> None:
    """What axe finds: contrast, names, roles, headings, what only a mouse reaches."""
    axe = Path(pytest.importorskip("axe_core_python").__file__).with_name("axe.min.js").read_text("utf-8")
    show(browser, page, scheme=scheme, size=size)
    assert browser.get_log("browser") == []
    wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= shown, "the page is wider than the screen"
    browser.execute_script(axe)
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    assert len(found["passes"]) > 20
    assert [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found["violations"]] == []


def test_light_and_dark_differ(browser: Any, page: Path) -> None:
    papers = []
    for scheme in ("light", "dark"):
        show(browser, page, scheme=scheme)
        papers.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert papers[0] != papers[1]


def test_nothing_is_fetched_and_no_name_is_markup(browser: Any, page: Path) -> None:
    show(browser, page)
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert browser.execute_script("return document.images.length") == 0
    assert MARKUP in browser.find_element("tag name", "main").text


def test_the_keyboard_goes_from_step_to_step(browser: Any, page: Path) -> None:
    keys = pytest.importorskip("selenium.webdriver").Keys
    show(browser, page)
    timeline, status = browser.find_element("id", "timeline"), browser.find_element("id", "status")
    for _ in range(20):  # Tab alone reaches it
        browser.switch_to.active_element.send_keys(keys.TAB)
        if browser.switch_to.active_element == timeline:
            break
    assert browser.switch_to.active_element == timeline
    timeline.send_keys(keys.ARROW_RIGHT)
    first = status.text
    timeline.send_keys(keys.ARROW_RIGHT)
    assert first and status.text and status.text != first
    assert status.get_attribute("aria-live") == "polite"
    timeline.send_keys(keys.ESCAPE)
    assert status.text == ""


def test_the_tables_sort_and_find(browser: Any, page: Path) -> None:
    keys = pytest.importorskip("selenium.webdriver").Keys
    show(browser, page)

    def names() -> list[str]:
        return [cell.text for cell in browser.find_elements("css selector", "#slowest td.name")]

    assert names()[0] == LONG
    head = next(each for each in browser.find_elements("css selector", "#slowest th") if each.text == "Time")
    for order, place in (("ascending", -1), ("descending", 0)):
        head.find_element("tag name", "button").send_keys(keys.ENTER)
        assert head.get_attribute("aria-sort") == order and names()[place] == LONG
    browser.find_element("id", "find").send_keys("short")
    assert names() == ["x.dir/short.cpp.o"]
