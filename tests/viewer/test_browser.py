"""The viewer as a person uses it, in a real browser."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.support.browser import chromium, complaints_of
from tests.support.served import Served

READY = "() => window.seunet?.pane?.columns?.length > 0"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """The page, with the outlines read; at the end nothing was complained of."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    complaints = complaints_of(page)
    page.goto(served.address)
    page.wait_for_function(READY)
    yield page
    context.close()
    assert complaints == []


def settle(page: Page) -> None:
    """Until all tiles are drawn."""
    page.wait_for_function("() => [window.seunet.pane, window.seunet.second].every(pane => !pane || pane.settled())")


def go(page: Page, x: float, y: float, zoom: float, pane: str = "pane") -> None:
    """Look at a place of the slide at so many screen pixels per pixel."""
    page.evaluate(
        f"([x, y, zoom]) => {{ const pane = window.seunet.{pane}, width = pane.facts.width;"
        "pane.osd.viewport.zoomTo(zoom * width / pane.place.clientWidth, null, true);"
        "pane.osd.viewport.panTo(new OpenSeadragon.Point(x / width, y / width), true); }",
        [x, y, zoom],
    )
    settle(page)


def colour_at(page: Page, x: float, y: float, pane: str = "pane") -> list[int]:
    """What the browser shows at a place of the slide."""
    found: list[int] = page.evaluate(
        f"([x, y]) => {{ const pane = window.seunet.{pane}, at = pane.toScreen(x, y);"
        "const ratio = OpenSeadragon.pixelDensityRatio, picture = pane.osd.drawer.canvas.getContext('2d');"
        "return [...picture.getImageData(Math.round(at.x * ratio), Math.round(at.y * ratio), 1, 1).data]; }",
        [x, y],
    )
    return found


def click(page: Page, x: float, y: float) -> None:
    """Click a place of the slide."""
    page.mouse.click(*place(page, x, y))


def place(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a place of the slide is on the page."""
    left, top = page.evaluate(
        "([x, y]) => { const pane = window.seunet.pane, box = pane.place.getBoundingClientRect();"
        "const at = pane.toScreen(x, y); return [box.left + at.x, box.top + at.y]; }",
        [x, y],
    )
    return left, top


def near(colour: list[int], wanted: tuple[int, int, int], off: int = 30) -> bool:
    return all(abs(a - b) <= off for a, b in zip(colour, wanted, strict=False))


def test_labels_are_seen_from_afar_and_outlines_from_near(page: Page) -> None:
    go(page, 600, 600, 0.2)
    assert page.locator(".pane").get_attribute("data-outlines") == "hidden"
    assert not near(colour_at(page, 650, 650), (105, 70, 150))  # the disc has the colour of its class over it
    go(page, 650, 650, 4)
    assert page.locator(".pane").get_attribute("data-outlines") == "shown"
    assert near(colour_at(page, 650, 650), (105, 70, 150))
    edge = json.loads(page.evaluate("async () => JSON.stringify(await (await fetch('api/at/0?x=650&y=650')).json())"))
    left = edge["box"][0]
    assert near(colour_at(page, left, 650.5), (255, 214, 64), off=70)


def test_a_nucleus_is_clicked_and_its_numbers_are_read(page: Page) -> None:
    go(page, 650, 650, 2)
    click(page, 650, 650)
    page.wait_for_selector("#object dd")
    text = page.inner_text("#object")
    assert "nucleus" in text
    assert "Area µm^2" in text
    assert page.locator("path.marked").count() == 1
    click(page, 700, 700)
    page.wait_for_selector("path.marked", state="detached")
    assert "click a nucleus" in page.inner_text("#object")


def test_the_scale_bar_and_the_legend_say_what_is_known(page: Page) -> None:
    assert "stated: 0.500 µm per pixel" in page.inner_text(".scalebar")
    assert "144" in page.inner_text("#legend")


def test_what_is_typed_while_an_answer_is_waited_for_stays(page: Page) -> None:
    page.click("#show-table")
    held: list[Route] = []
    page.route("**/api/histogram/**", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/api/histogram/**"):
        page.select_option("#measurement", label="Area px^2")
    page.fill("#low", "1200")
    with page.expect_response("**/api/histogram/**"):
        held[0].continue_()
    page.wait_for_function("() => document.querySelectorAll('rect.all').length > 0")
    assert page.input_value("#low") == "1200"
    page.press("#low", "Enter")
    page.wait_for_function("() => !document.getElementById('left').textContent.startsWith('144 ')")


def test_objects_are_sorted_filtered_and_exported(page: Page, tmp_path: Path) -> None:
    page.click("#show-table")
    page.click("#drawer th button:text('Area px^2')")
    page.click("#drawer th button:text('Area px^2')")
    page.wait_for_selector("#drawer th[aria-sort=descending]")
    page.select_option("#measurement", label="Area px^2")
    page.fill("#low", "1200")
    page.press("#low", "Enter")
    page.wait_for_function("() => !document.getElementById('left').textContent.startsWith('144 ')")
    left = int(page.inner_text("#left").split()[0])
    assert 0 < left < 144
    with page.expect_download() as waiting:
        page.click("#export-csv")
    waiting.value.save_as(tmp_path / "objects.csv")
    with (tmp_path / "objects.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == left
    assert all(float(row["Area px^2"]) >= 1200 for row in rows)
    with page.expect_download() as waiting:
        page.click("#export-geojson")
    waiting.value.save_as(tmp_path / "objects.geojson")
    assert len(json.loads((tmp_path / "objects.geojson").read_text())["features"]) == left
    go(page, 50, 50, 2)
    settle(page)
    page.click("#drawer tbody tr >> nth=0")
    page.wait_for_selector("path.marked")


def test_a_reload_shows_the_same(page: Page) -> None:
    page.reload()
    page.wait_for_function(READY)
    page.wait_for_function("() => document.getElementById('left')?.textContent === '144 of 144 objects'")


def test_keys_switch_layers_and_the_theme_is_light_or_dark(page: Page) -> None:
    page.keyboard.press("l")
    assert not page.is_checked("#show-labels")
    page.keyboard.press("l")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(23, 22, 25)"
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 248)"


def test_a_region_is_drawn_and_saved_as_geojson(page: Page, tmp_path: Path) -> None:
    go(page, 600, 600, 1)
    page.click("#draw-rectangle")
    start, end = (place(page, *point) for point in ((400, 500), (700, 800)))
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
    page.wait_for_selector("path.region")
    page.click("#draw-polygon")
    for point in ((200, 400), (300, 400), (300, 600)):
        page.mouse.click(*place(page, *point))
        page.wait_for_timeout(350)  # two clicks at once would be a double click
    page.keyboard.press("Enter")
    page.wait_for_function("() => window.seunet.regions.regions.length === 2")
    with page.expect_download() as waiting:
        page.click("#save-regions")
    waiting.value.save_as(tmp_path / "regions.geojson")
    first, second = json.loads((tmp_path / "regions.geojson").read_text())["features"]
    assert first["properties"] == {"objectType": "annotation", "name": "region 1"}
    corners = first["geometry"]["coordinates"][0]
    assert corners[0] == corners[-1]
    assert sorted({x for x, _ in corners}) == pytest.approx([400, 700], abs=2)
    assert sorted({y for _, y in corners}) == pytest.approx([500, 800], abs=2)
    assert len(second["geometry"]["coordinates"][0]) == 4
    page.reload()
    page.wait_for_function(READY)
    page.set_input_files("#regions-file", tmp_path / "regions.geojson")
    page.wait_for_function("() => window.seunet.regions.regions.length === 2")


def test_two_results_are_compared_side_by_side_and_by_swipe(page: Page) -> None:
    page.select_option("#other", label="second")
    page.wait_for_selector("#differences dd")
    counts = page.eval_on_selector_all("#differences dd", "all => all.map(one => one.textContent)")
    assert counts == ["132", "0", "12", "1"]
    page.wait_for_function("() => window.seunet.second?.columns?.length > 0")
    go(page, 650, 650, 2)
    centre = "osd.viewport.getCenter(true).x"
    page.wait_for_function(
        f"() => Math.abs(window.seunet.pane.{centre} - window.seunet.second.{centre}) < 1e-4 "
        f"&& Math.abs(window.seunet.pane.{centre} - 650 / 1200) < 1e-4"
    )
    page.click("#only-differences")
    page.wait_for_function("() => [...(window.seunet.pane.outlines.mask ?? [])].filter(Boolean).length === 2")
    assert page.locator("#which").evaluate("one => one.selectedOptions[0].textContent") == "first"
    page.click("#swipe")
    assert page.locator("#stage.swipe").count() == 1
    page.focus("#divider")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.getElementById('stage').style.getPropertyValue('--at')") == "52%"
    page.reload()
    page.wait_for_selector("#differences dd")
