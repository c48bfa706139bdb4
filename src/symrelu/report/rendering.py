"""The page as HTML text: a template, the style and the script, allowed by their hashes alone."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from html import escape
from importlib.resources import files

from symrelu.report.contents import Contents, fit_to_size

_PLACE = re.compile(r"\{\{(\w+)\}\}")
# What a browser replaces, and UTF-8 cannot hold.
_NO_TEXT = re.compile("[\ud800-\udfff\0]")


def render(contents: Contents) -> str:
    """Return the page.

    Parameters
    ----------
    contents : Contents
        Links are left out if the page would be too large; the page says so.

    Returns
    -------
    html : str
    """
    contents = fit_to_size(contents, lambda one: len(_page(one).encode()))
    return _page(contents)


def policy(style: str, script: str) -> str:
    """Return the content security policy of a page: nothing but this style and this script.

    Parameters
    ----------
    style, script : str
        Exactly as in the page.

    Returns
    -------
    policy : str
    """
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def _page(contents: Contents) -> str:
    style, script = _part("page.css"), _part("page.js")
    summary = contents.summary
    parts = {
        "policy": escape(policy(style, script)),
        "title": _text(contents.title),
        "version": _text(contents.version),
        "style": style,
        "script": script,
        "data": contents.json(),
        "facts": "\n".join(
            f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in summary.facts
        ),
        "sentences": _paragraphs(summary.sentences),
        "advice": _items(summary.advice),
        "notes": _paragraphs(contents.notes),
    }
    # In one pass, so that what is put in is not searched again.
    return _PLACE.sub(lambda found: parts[found[1]], _part("page.html"))


def _paragraphs(sentences: tuple[str, ...]) -> str:
    return "\n".join(f"<p>{_text(sentence)}</p>" for sentence in sentences)


def _items(sentences: tuple[str, ...]) -> str:
    return "\n".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)


def _text(text: str) -> str:
    return escape(_NO_TEXT.sub("\ufffd", text))


@lru_cache(maxsize=3)
def _part(name: str) -> str:
    # Lines end in \n on every system: the hashes must be those of what a browser reads.
    return files("symrelu.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
