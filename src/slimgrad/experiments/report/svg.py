"""Turns matplotlib figures into SVG that can stand inside an HTML page.

Colours become CSS variables, so one drawing serves a light and a dark page; text stays text; ids
are made unique; nothing is left that a browser would fetch.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"

# Stand-ins drawn by matplotlib and replaced by CSS variables. After Okabe and Ito's palette for
# colour-blind readers; the dark values are lightened to keep their contrast.
INK, FAINT, GRID = "#010203", "#040506", "#070809"
SERIES = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05", "#0a0b06", "#0a0b07")
LIGHT = ("#2b2f36", "#0067a8", "#c2410c", "#00805b", "#9c3f86", "#8a6100", "#3b7dbd")
DARK = ("#e6e8eb", "#62b5f0", "#ff9160", "#3fcf9f", "#e49bd2", "#e8b73a", "#a9d0f5")
_VARIABLES = {
    INK: "var(--ink, #1d2127)",
    FAINT: "var(--faint, #5c6470)",
    GRID: "var(--rule, #d8dce2)",
    **{
        stand_in: f"var(--series-{index}, {light})"
        for index, (stand_in, light) in enumerate(zip(SERIES, LIGHT, strict=True))
    },
}

_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # measured by matplotlib, replaced by the page's font below
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": GRID,
    "axes.titlecolor": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def drawing(name: str) -> AbstractContextManager[None]:
    """Within it, figures are drawn in the style of reports; same input, same bytes."""
    import matplotlib as mpl

    rc: Any = {**_SETTINGS, "svg.hashsalt": f"slimgrad-{name}"}
    return mpl.rc_context(rc)


def to_inline_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """The figure as one ``<svg>`` element with an accessible name and description.

    Args:
        figure: drawn within ``drawing(name)`` with the stand-in colours of this module.
        name: letters and dashes; makes ids unique within a page.
        title: short accessible name.
        description: what a reader who cannot see the figure should know.
    """
    written = io.BytesIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(written, format="svg", metadata=metadata)
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(written.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata":
                parent.remove(child)
    for element in root.iter():
        if _XLINK_HREF in element.attrib:
            element.set("href", element.attrib.pop(_XLINK_HREF))
        for key, value in element.attrib.items():
            element.set(key, _rewrite(key, value, name))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-description")
    root.set("class", "figure")
    for index, (tag, text) in enumerate((("title", title), ("desc", description))):
        suffix = "title" if tag == "title" else "description"
        element = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{suffix}"})
        element.text, element.tail = printable(text), "\n"
        root.insert(index, element)
    return ElementTree.tostring(root, encoding="unicode")


def standalone(inline: str) -> str:
    """An inline ``<svg>`` as a file of its own: light colours on white, no variables.

    >>> standalone('<svg fill="var(--ink, #1d2127)">')
    '<svg style="background: #fff" fill="#1d2127">'
    """
    fixed = re.sub(r"var\(--[\w-]+, (#\w+)\)", r"\1", inline)
    return fixed.replace("<svg ", '<svg style="background: #fff" ', 1)


def printable(text: str) -> str:
    r"""``text`` with characters that XML forbids, or that nobody can see, marked as replaced.

    >>> printable("a\x00b") == "a\ufffdb"
    True
    """
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _rewrite(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return re.sub(r"^#", f"#{name}-", value)
    value = re.sub(r"url\(#", f"url(#{name}-", value)
    value = value.replace("'DejaVu Sans'", "system-ui, sans-serif")
    for stand_in, variable in _VARIABLES.items():
        value = value.replace(stand_in, variable)
    return value
