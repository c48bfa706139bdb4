"""The report page, used in Chromium as a reader uses it."""

import csv

import pytest
from browser_page import FIRST_ACCOUNT, HOSTILE, SIZE, N
from chromium import complaints, emulate, resize

pytest.importorskip("selenium", reason="selenium is in the extra test-browser")

from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


def find(page, css):
    return page.find_element(By.CSS_SELECTOR, css)


def wait(page, condition, what):
    return WebDriverWait(page, 5).until(lambda _: condition(), what)


def js(page, expression, *arguments):
    return page.execute_script(f"return {expression}", *arguments)


def place(page, node):
    """Return where a node is in the window."""
    page.execute_script("document.getElementById('map').scrollIntoView({block: 'center'})")
    return [round(x) for x in js(page, "report.place(arguments[0])", node)]


def point_at(page, *at):
    actions = ActionChains(page, duration=20)
    actions.w3c_actions.pointer_action.move_to_location(*at)
    return actions


def pixels(page):
    """Return a number that changes with what the map shows."""
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return js(page, "document.getElementById('map').toDataURL()")


def background(page):
    return js(page, "getComputedStyle(document.body).backgroundColor")


def downloaded(page, name):
    path = page.downloads / name
    wait(page, lambda: path.exists() and path.stat().st_size > 0, f"no {name}")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    path.unlink()
    return rows


def test_labels_are_texts(page):
    with pytest.raises(NoAlertPresentException):
        page.switch_to.alert  # noqa: B018
    assert page.title == find(page, "h1").text == HOSTILE[0]
    names = [cell.text for cell in page.find_elements(By.CSS_SELECTOR, "#rows .link")]
    assert names[: len(HOSTILE)] == HOSTILE
    assert js(page, "document.querySelectorAll('main script, main img').length") == 0
    assert js(page, "report.names") == HOSTILE + [f"node {k}" for k in range(len(HOSTILE), N)]


def test_zoom(page):
    canvas, before = find(page, "#map"), pixels(page)
    find(page, "#zoom-in").click()
    canvas.send_keys("+")
    assert js(page, "report.view.zoom") == pytest.approx(1.4**2)
    assert pixels(page) != before
    canvas.send_keys("-")
    assert js(page, "report.view.zoom") == pytest.approx(1.4)
    find(page, "#zoom-reset").click()
    assert js(page, "report.view.zoom") == 1
    # The wheel keeps what is under the pointer where it is.
    x, y = place(page, 5)
    page.execute_cdp_cmd(
        "Input.dispatchMouseEvent", {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -300}
    )
    wait(page, lambda: js(page, "report.view.zoom") > 1.2, "the wheel did not zoom")
    assert place(page, 5) == [pytest.approx(x, abs=2), pytest.approx(y, abs=2)]


def test_pinch(page):
    x, y = place(page, 0)

    def touch(kind, gap):
        points = [{"x": x - gap, "y": y, "id": 0}, {"x": x + gap, "y": y, "id": 1}] if gap else []
        page.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 30)
    for gap in (40, 50, 60):
        touch("touchMove", gap)
    touch("touchEnd", 0)
    wait(page, lambda: js(page, "report.view.zoom") > 1.5, "a pinch did not zoom")


def test_drag_moves_the_map(page):
    x, y = place(page, 0)
    point_at(page, x + 200, y + 100).perform()
    actions = point_at(page, x + 200, y + 100)
    actions.w3c_actions.pointer_action.pointer_down()
    actions.w3c_actions.pointer_action.move_to_location(x + 260, y + 130)
    actions.w3c_actions.pointer_action.pointer_up()
    actions.perform()
    assert place(page, 0) == [pytest.approx(x + 60, abs=2), pytest.approx(y + 30, abs=2)]


@pytest.mark.parametrize("node", [0, 2, 4, 30])
def test_hover_shows_the_name_and_the_neighbours(page, node):
    before = pixels(page)
    point_at(page, *place(page, node)).perform()
    wait(page, lambda: page.find_elements(By.CSS_SELECTOR, "#details ul[aria-label=Neighbours]"), "no details")
    assert find(page, "#details h3").text == js(page, "report.names[arguments[0]]", node)
    shown = [item.text for item in page.find_elements(By.CSS_SELECTOR, "#details li")]
    expected = js(page, "report.neighbours[arguments[0]].map((i) => report.names[i])", node)
    assert shown == expected[:10]
    assert pixels(page) != before
    point_at(page, 2, 2).perform()
    wait(page, lambda: find(page, "#details h3").text == "Most links", "the details stay")


def test_a_click_keeps_a_node_and_a_neighbour_can_be_chosen(page):
    point_at(page, *place(page, 8)).click().perform()
    point_at(page, 2, 2).perform()
    assert find(page, "#details h3").text == "node 8"
    other = find(page, "#details li button")
    name = other.text
    other.click()
    assert find(page, "#details h3").text == name
    assert name in find(page, "#announcement").get_property("textContent")


def test_search(page):
    box = find(page, "#search")
    box.send_keys("NODE 1")
    options = page.find_elements(By.CSS_SELECTOR, "#suggestions li")
    assert [option.text for option in options][:2] == ["node 10", "node 11"]
    assert box.get_attribute("aria-expanded") == "true"
    box.send_keys(Keys.ARROW_DOWN)
    assert box.get_attribute("aria-activedescendant") == "suggestion-1"
    box.send_keys(Keys.ENTER)
    assert find(page, "#details h3").text == "node 11"
    assert not find(page, "#suggestions").is_displayed()
    box.clear()
    box.send_keys("<SCRIPT>")
    find(page, "#suggestions li").click()
    assert find(page, "#details h3").text == HOSTILE[0]
    box.clear()
    box.send_keys("nobody")
    assert find(page, "#suggestions").text == "No node has this name."


def test_colours(page):
    find(page, "#colour").send_keys("size")
    wait(page, lambda: js(page, "document.getElementById('colour').value") == "size", "not chosen")
    assert find(page, "#legend").text.split() == ["0", "8.4286"]
    page.execute_script(
        "const c = document.getElementById('colour'); c.value = 'kind'; c.dispatchEvent(new Event('change'))"
    )
    texts = [button.text for button in page.find_elements(By.CSS_SELECTOR, "#legend button bdi")]
    assert sorted(texts) == sorted(HOSTILE)


def lasso(page, nodes):
    """Draw a line around nodes."""
    find(page, "#lasso").click()
    points = [place(page, node) for node in nodes]
    xs, ys = zip(*points, strict=True)
    corners = [(min(xs) - 12, min(ys) - 12), (max(xs) + 12, min(ys) - 12), (max(xs) + 12, max(ys) + 12)]
    corners.append((min(xs) - 12, max(ys) + 12))
    actions = point_at(page, *corners[0])
    actions.w3c_actions.pointer_action.pointer_down()
    for corner in (*corners[1:], corners[0]):
        actions.w3c_actions.pointer_action.move_to_location(*corner)
    actions.w3c_actions.pointer_action.pointer_up()
    actions.perform()


def test_lasso_and_export(page):
    lasso(page, range(SIZE))
    assert find(page, "#selected").text == f"{SIZE} nodes are selected."
    find(page, "#export").click()
    header, *rows = downloaded(page, "selection.csv")
    assert header == ["node", "cluster", "degree", "size", "kind", "account"]
    safe = [f"'{name}" if name == "=cmd()" else name for name in HOSTILE]
    assert [row[0] for row in rows] == safe + [f"node {k}" for k in range(len(HOSTILE), SIZE)]
    assert [row[4] for row in rows[: len(HOSTILE)]] == safe
    assert {row[1] for row in rows} == {"group 0"}
    assert [float(row[3]) for row in rows] == pytest.approx([k / 7 for k in range(SIZE)], rel=1e-6)
    assert [row[5] for row in rows] == [str(FIRST_ACCOUNT + k) for k in range(SIZE)]
    find(page, "#clear").click()
    assert find(page, "#selected").text == "No node is selected."
    assert not find(page, "#export").is_enabled()


def test_the_legend_selects_a_group(page):
    find(page, "#legend button:nth-child(2)").click()
    assert set(js(page, "[...report.selection]")) == set(range(SIZE, 2 * SIZE))
    find(page, "#only-selected").click()
    assert f"of {SIZE}" in find(page, "#page").text


def column(page, number):
    return [cell.text for cell in page.find_elements(By.CSS_SELECTOR, f"#rows td:nth-child({number})")]


def test_table(page):
    assert find(page, "#page").text == f"1 to 15 of {N}"
    degree = find(page, "#head th:nth-child(4)")
    degree.find_element(By.TAG_NAME, "button").click()
    assert degree.get_attribute("aria-sort") == "ascending"
    shown = list(map(int, column(page, 4)))
    assert shown == sorted(js(page, "report.columns[1].values.map(Number)"))[:15]
    degree.find_element(By.TAG_NAME, "button").click()
    assert degree.get_attribute("aria-sort") == "descending"
    assert int(column(page, 4)[0]) == max(js(page, "report.columns[1].values.map(Number)"))
    find(page, "#next").click()
    assert find(page, "#page").text == f"16 to 30 of {N}"
    find(page, "#filter").send_keys("Group 1")
    assert find(page, "#page").text == f"1 to 15 of {SIZE}"
    assert set(column(page, 3)) == {"group 1"}
    find(page, "#head th:nth-child(2) button").click()
    assert column(page, 2)[0] == f"node {SIZE}"
    find(page, "#export-table").click()
    assert len(downloaded(page, "nodes.csv")) == SIZE + 1
    find(page, "#filter").send_keys("xyz")
    assert find(page, "#page").text == "No row has this text."


def test_a_row_selects_and_shows_its_node(page):
    find(page, "#rows tr:nth-child(2) input").click()
    assert js(page, "[...report.selection]") == [1]
    find(page, "#rows tr:nth-child(3) .link").click()
    assert find(page, "#details h3").text == HOSTILE[2]
    assert find(page, "#rows tr.current .link").text == HOSTILE[2]


def test_dark_mode(page):
    light, picture = background(page), pixels(page)
    find(page, "#theme").click()
    assert background(page) != light
    assert pixels(page) != picture
    assert find(page, "#theme").get_attribute("aria-pressed") == "true"
    find(page, "#theme").click()
    assert background(page) == light
    # Without a choice, the system decides.
    page.refresh()
    emulate(page, "prefers-color-scheme", "dark")
    wait(page, lambda: background(page) != light, "the system's theme does not count")
    # The style changes before the script hears of it.
    button = find(page, "#theme")
    wait(page, lambda: button.get_attribute("aria-pressed") == "true", "the button shows the other theme")


def test_keyboard(page):
    """Every control is reached by Tab, and the map can be walked along its links."""
    reached = []
    body = find(page, "body")
    for _ in range(200):
        ActionChains(page).send_keys(Keys.TAB).perform()
        here = page.switch_to.active_element
        if here == body:
            break
        reached.append(here.get_attribute("id") or here.text)
        assert js(page, "getComputedStyle(document.activeElement).outlineStyle") != "none", reached[-1]
    controls = {"theme", "search", "colour", "show-links", "zoom-in", "lasso", "map", "filter", "next"}
    assert controls <= set(reached)
    assert reached[0] == "Skip to the table of nodes"
    canvas = find(page, "#map")
    page.execute_script("arguments[0].focus()", canvas)
    canvas.send_keys(Keys.ARROW_RIGHT)
    degrees = js(page, "report.columns[1].values.map(Number)")
    first = js(page, "report.names").index(find(page, "#details h3").text)
    assert degrees[first] == max(degrees)
    heard = find(page, "#announcement").get_property("textContent")
    assert heard.startswith(find(page, "#details h3").text)
    visited = [first]
    for key in (Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_UP, Keys.ARROW_RIGHT):
        canvas.send_keys(key)
        visited.append(js(page, "report.names").index(find(page, "#details h3").text))
    assert len(set(visited)) > 2
    canvas.send_keys(" ")
    assert js(page, "[...report.selection]") == [visited[-1]]
    canvas.send_keys(Keys.ESCAPE)
    assert find(page, "#details h3").text == "Most links"


def focus_of(page):
    """Return what has the keyboard focus after the next frame: its tag, and its id, label or text."""
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    here = page.switch_to.active_element
    return here.tag_name, here.get_attribute("id") or here.get_attribute("aria-label") or here.text


def press_on(page, css, key):
    control = find(page, css)
    page.execute_script("arguments[0].focus()", control)
    ActionChains(page).send_keys(key).perform()


def test_focus_stays_on_a_row_that_is_selected(page):
    press_on(page, "#rows tr:nth-child(8) input", Keys.SPACE)
    assert js(page, "[...report.selection]") == [7]
    assert focus_of(page) == ("input", "Select node 7")
    ActionChains(page).send_keys(Keys.SPACE).perform()
    assert js(page, "[...report.selection]") == []
    assert focus_of(page) == ("input", "Select node 7")


def test_focus_stays_in_a_table_of_selected_rows(page):
    find(page, "#legend button:nth-child(2)").click()
    find(page, "#only-selected").click()
    find(page, "#next").click()
    press_on(page, "#rows tr:nth-child(2) input", Keys.SPACE)
    assert f"of {SIZE - 1}" in find(page, "#page").text
    assert find(page, "#page").text.startswith("16 to")  # the same page as before
    assert focus_of(page)[0] == "input"
    for left in range(SIZE - 2, -1, -1):
        press_on(page, "#rows tr:nth-child(1) input", Keys.SPACE)
        assert len(js(page, "[...report.selection]")) == left
        assert focus_of(page)[0] == "input"
    assert focus_of(page) == ("input", "only-selected")


def test_focus_stays_on_a_name_in_the_table(page):
    press_on(page, "#rows tr:nth-child(8) .link", Keys.ENTER)
    assert find(page, "#details h3").text == "node 7"
    assert focus_of(page) == ("button", "node 7")
    assert find(page, "#rows tr.current .link").text == "node 7"


def test_focus_follows_a_neighbour(page):
    press_on(page, "#rows tr:nth-child(8) .link", Keys.ENTER)
    name = find(page, "#details li:nth-child(2) button").text
    press_on(page, "#details li:nth-child(2) button", Keys.ENTER)
    assert focus_of(page) == ("h3", name) == ("h3", find(page, "#details h3").text)
    ActionChains(page).send_keys(Keys.TAB).perform()
    assert focus_of(page) == ("button", "Select with neighbours")


def test_focus_at_the_ends_of_the_table(page):
    for _ in range(N // 15 - 1):
        assert find(page, "#next").is_enabled()
        press_on(page, "#next", Keys.ENTER)
    assert not find(page, "#next").is_enabled()
    assert focus_of(page) == ("button", "previous")
    for _ in range(N // 15 - 1):
        press_on(page, "#previous", Keys.ENTER)
    assert focus_of(page) == ("button", "next")


def test_focus_after_the_selection_is_cleared(page):
    press_on(page, "#rows tr:nth-child(8) input", Keys.SPACE)
    press_on(page, "#clear", Keys.ENTER)
    assert focus_of(page) == ("button", "lasso")


def test_a_lasso_that_the_system_cancels_selects_nothing(page):
    find(page, "#lasso").click()
    x, y = place(page, 0)
    page.execute_script(
        "const [map, x, y] = [document.getElementById('map'), ...arguments];"
        "map.setPointerCapture = () => null;"  # this pointer exists in the test only
        "const send = (type, x, y) => map.dispatchEvent("
        "  new PointerEvent(type, {pointerId: 7, clientX: x, clientY: y, bubbles: true}));"
        "send('pointerdown', x - 300, y - 300); send('pointermove', x + 300, y - 300);"
        "send('pointermove', x + 300, y + 300); send('pointermove', x - 300, y + 300);"
        "send('pointercancel', x - 300, y + 300)",
        x,
        y,
    )
    assert js(page, "report.selection.size") == 0


@pytest.mark.parametrize("control", ["zoom-in", "zoom-reset", "map"])
def test_whoever_moves_the_map_ends_its_own_movement(page, control):
    """The view must not change any more once it was zoomed, reset or panned by a key."""
    view = page.execute_async_script(
        "const [control, done] = [document.getElementById(arguments[0]), arguments[1]];"
        "document.querySelector('#rows tr:nth-child(8) .link').click();"
        "requestAnimationFrame(() => {"
        "  if (control.id === 'map')"
        "    control.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', shiftKey: true}));"
        "  else control.click();"
        "  const {x, y} = report.view;"
        "  setTimeout(() => done([x, y, report.view.x, report.view.y]), 400);"
        "})",
        control,
    )
    assert view[:2] == view[2:]


def test_the_text_on_the_matrices_says_how_they_are_ordered(page, page_file, tmp_path):
    assert "ordered by cluster and by place on the map" in find(page, "#matrices-text").text
    # A column that is called cluster, as this page has, does not order them.
    html = page_file.read_text(encoding="utf-8")
    assert '"byCluster":true' in html
    (tmp_path / "page.html").write_text(html.replace('"byCluster":true', '"byCluster":false'), encoding="utf-8")
    page.get((tmp_path / "page.html").as_uri())
    assert "ordered by place on the map" in find(page, "#matrices-text").text


@pytest.mark.parametrize("width", [390, 320, 1300])
def test_nothing_is_wider_than_the_window(page, width):
    resize(page, width, 844)
    page.refresh()
    point_at(page, *place(page, 3)).click().perform()
    find(page, "#search").send_keys("n")
    assert js(page, "document.documentElement.scrollWidth") <= width
    assert find(page, "#map").size["width"] > width * 0.6
    large = [
        e for e in page.find_elements(By.CSS_SELECTOR, "button:not(.link):not(th button)") if e.is_displayed()
    ]
    if width < 500:  # large enough for a finger
        assert min(element.size["height"] for element in large) >= 30


def test_motion_is_reduced_where_it_is_asked_for(page):
    press = (
        "const box = document.getElementById('search'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input'));"
        "box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));"
        "const map = document.getElementById('map').getBoundingClientRect();"
        "const [x, y] = report.place(report.names.indexOf(arguments[0]));"
        "return Math.hypot(x - map.x - map.width / 2, y - map.y - map.height / 2)"
    )
    assert page.execute_script(press, "node 20") > 20  # on its way to the middle
    emulate(page, "prefers-reduced-motion", "reduce")
    assert page.execute_script(press, "node 40") < 2  # there at once


def test_the_page_can_be_printed(page):
    find(page, "#theme").click()
    pdf = page.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert len(pdf) > 10_000
    assert js(page, "document.documentElement.dataset.theme") == "dark"  # as before


def test_what_the_policy_forbids_is_refused_and_seen(page):
    """The test of the tests: a script, a style and a request that were not in the page are complained of."""
    page.execute_script(
        "const s = document.createElement('style'); s.textContent = 'body {display: none}';"
        "document.head.append(s);"
        "const i = new Image(); i.src = 'http://127.0.0.1:9/x.png';"
        "fetch('http://127.0.0.1:9/').catch(() => null); console.error('noticed')"
    )
    found = []
    wait(page, lambda: found.extend(complaints(page)) or len(found) > 3, "nothing was seen")
    assert find(page, "body").is_displayed()
    assert any("noticed" in text for text in found)
    for directive in ("style-src", "img-src", "connect-src"):
        assert any(directive in text for text in found), found
    with pytest.raises(Exception, match="TrustedHTML"):
        page.execute_script("document.body.innerHTML = '<p>x</p>'")
    complaints(page)
