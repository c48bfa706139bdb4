"""Take the pictures of docs/report.rst. It needs Chromium, see CONTRIBUTING.md.

python docs/report_pictures.py
"""

import base64
import io
import sys
import tempfile
import warnings
from pathlib import Path

import networkx
from PIL import Image

from symrelu import SymReLU, SymReLUClustering, report
from symrelu.datasets import load_digits_graph

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from chromium import started  # noqa: E402

WIDTHS = {"desktop": 1300, "phone": 390}
# What the pictures show from: the top of the page, or the map, which is further below on a phone.
TOPS = {"desktop": "document.body", "phone": "document.querySelector('#map-heading').parentElement"}
END = "document.querySelector('#map-help').parentElement"
CHOOSE = """
const box = document.getElementById("search");
box.value = arguments[0];
box.dispatchEvent(new Event("input"));
box.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
document.getElementById("zoom-reset").click();
"""


def write_pages(folder):
    """Write a page of a network and one of a graph of nearest neighbours."""
    network = networkx.les_miserables_graph()
    digits, classes = load_digits_graph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clusters = SymReLUClustering(6, random_state=0).fit(network).labels_
        report.write(
            folder / "light.html",
            network,
            SymReLU(random_state=0).fit(network),
            clusters,
            title="Les Misérables",
        )
        clusters = SymReLUClustering(10, random_state=0).fit(digits).labels_
        report.write(
            folder / "dark.html",
            digits,
            SymReLU(20, random_state=0).fit(digits),
            clusters,
            columns={"digit": classes},
            title="1797 handwritten digits",
        )


def take(folder, where, theme, node):
    """Take a picture of a page, with a node in focus or none."""
    with started(WIDTHS[where], 844, dark=theme == "dark") as driver:
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": "prefers-color-scheme", "value": theme},
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ]
            },
        )
        driver.get((folder / f"{theme}.html").as_uri())
        if node:
            driver.execute_script(CHOOSE, node)
        driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        top = driver.execute_script(f"return {TOPS[where]}.getBoundingClientRect().top + scrollY")
        end = driver.execute_script(f"return {END}.getBoundingClientRect().bottom + scrollY")
        clip = {"x": 0, "y": top, "width": WIDTHS[where], "height": end - top + 12, "scale": 1}
        options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        picture = driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    # A palette makes the file half as large, and nobody sees the difference.
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    colours = image.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3)
    colours.save(HERE / "_static" / f"report-{where}-{theme}.png", optimize=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pages(folder)
        for theme, node in {"light": "Gavroche", "dark": None}.items():
            for where in WIDTHS:
                take(folder, where, theme, node)


if __name__ == "__main__":
    main()
