"""Read a report page back: its parts by an HTML parser, and its data as plain values."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np


class Page(HTMLParser):
    """The parts of a page: ``scripts``, ``style``, ``policy``, ``texts`` and all attributes of all elements."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.html, self.scripts, self.style, self.policy = html, [], None, None
        self.texts, self.attributes, self._inside = [], [], []
        self.feed(html)
        self.close()
        assert not self._inside, f"open at the end: {self._inside}"

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, *attribute) for attribute in attributes]
        found = dict(attributes)
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        if tag not in ("meta", "input", "br", "link", "img"):
            self._inside.append(tag)
        if tag == "script":
            self.scripts.append((found, ""))

    def handle_endtag(self, tag):
        assert self._inside.pop() == tag

    def handle_data(self, text):
        if self._inside and self._inside[-1] == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + text)
        elif self._inside and self._inside[-1] == "style":
            self.style = (self.style or "") + text
        else:
            self.texts.append(text)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))

    @property
    def data(self):
        (found,) = [text for attributes, text in self.scripts if attributes.get("type") == "application/json"]
        return json.loads(found)

    @property
    def program(self):
        (found,) = [text for attributes, text in self.scripts if "type" not in attributes]
        return found


def read_page(path):
    return Page(path.read_bytes().decode())


def sha256(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def numbers(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def varints(text):
    """Decode by the definition, one byte at a time."""
    found, number, shift = [], 0, 0
    for byte in base64.b64decode(text):
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(number)
            number, shift = 0, 0
    assert shift == 0
    return found


def links(data):
    """Return the pairs of a page."""
    codes = iter(varints(data["links"]["pairs"]))
    pairs = []
    for i in range(len(data["names"])):
        j = i
        for _ in range(next(codes)):
            j += next(codes)
            pairs.append((i, j))
    assert next(codes, None) is None
    return pairs


def column(data, name):
    """Return the values of a column of a page."""
    (found,) = [column for column in data["columns"] if column["name"] == name]
    if found["kind"] == "category":
        return [None if code == 0 else found["categories"][code - 1] for code in varints(found["data"])]
    if found["kind"] == "integer":
        codes = varints(found["data"])
        return [None if code == 0 else [(code - 1) // 2, -(code // 2)][(code - 1) % 2] for code in codes]
    if found["kind"] == "number":
        return [None if np.isnan(x) else float(x) for x in numbers(found["data"], "<f4")]
    return found["data"]
