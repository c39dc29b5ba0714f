from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from slimgrad.core.errors import ConfigError
from slimgrad.experiments.report.theory_figures import theory_figures
from slimgrad.theory import exponential_levels, variance_bound


@pytest.fixture(scope="module")
def figures() -> dict[str, str]:
    return {figure.name: figure.svg for figure in theory_figures(bits=3, bucket_size=8192)}


def _described(svg: str) -> str:
    found = re.search(r"<desc[^>]*>(.*?)</desc>", svg)
    assert found is not None
    return found[1]


def test_each_figure_is_a_file_of_its_own_that_fetches_nothing(figures: dict[str, str]) -> None:
    assert list(figures) == ["levels", "ratio", "bounds"]
    for name, svg in figures.items():
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "var(" not in svg
        assert 'style="background: #fff"' in svg
        assert not re.search(r'(href|src)="(?!#)', svg)
        assert f'id="{name}-title"' in svg
        # Nothing is left of the colours that stand in for those of a page.
        assert not re.search(r"#0[a0]0[b1]0", svg)


def test_figures_are_the_same_each_time(figures: dict[str, str]) -> None:
    again = {figure.name: figure.svg for figure in theory_figures(bits=3, bucket_size=8192)}
    assert again == figures


def test_figures_say_the_numbers_they_draw(figures: dict[str, str]) -> None:
    assert "NUQSGD: levels 0, 0.25, 0.5, 1; QSGD: levels 0, 0.333" in _described(figures["levels"])
    bound = variance_bound(exponential_levels(6), 8192)
    assert f"NUQSGD at 4 bits and 8,192: {bound:.3g}" in _described(figures["bounds"])
    # The closed form is least at p = 0.412 with 0.250.
    assert "4 bits: least 0.25 at ratio 0.41" in _described(figures["ratio"])


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"bits": 1}, "bits = 1"),
        ({"bits": 6}, "bits = 6"),
        ({"bucket_size": 1}, "bucket_size = 1"),
        ({"bucket_size": 10**9 + 1}, "from 2 to 1,000,000,000"),
    ],
)
def test_what_cannot_be_drawn_is_said(settings: dict[str, int], fact: str) -> None:
    with pytest.raises(ConfigError, match=fact):
        theory_figures(**settings)
