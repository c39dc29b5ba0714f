from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from slimgrad import theory
from slimgrad.cli.theory.app import QUESTIONS

Command = Callable[..., Any]


@pytest.fixture
def ask(slimgrad_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Asks ``slimgrad theory`` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *tokens: slimgrad_command("theory", *tokens)


def answered(ask: Command, *tokens: str) -> dict[str, Any]:
    outcome = ask(*tokens, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def refused(outcome: Any, *facts: str) -> None:
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("slimgrad: ")
    assert outcome.err.count("\n") == 1
    for fact in facts:
        assert fact in outcome.err


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_example_runs_and_is_shown(ask: Command, question: str) -> None:
    example = QUESTIONS[question][1]
    words = shlex.split(example.replace("\\\n", " "))
    assert words[:3] == ["slimgrad", "theory", question]
    outcome = ask(*words[2:])
    assert (outcome.code, outcome.err) == (0, "")
    assert len(outcome.out.splitlines()) >= 3
    for helped in (ask("--help"), ask(question, "--help")):
        assert helped.code == 0
        assert " ".join(example.split()) in " ".join(helped.out.split())


def test_variance_prints_bounds_of_what_is_configured(ask: Command) -> None:
    answer = answered(ask, "variance", "--bits", "4", "--bucket-size", "8192")
    levels = theory.exponential_levels(6)
    assert answer["levels"] == list(levels)
    assert answer["variance_bound"] == pytest.approx(0.569444, abs=1e-6)
    assert answer["theorem4_printed"] == pytest.approx(0.539214, abs=1e-6)
    assert answer["notes"]["theorem4_printed"] == "as printed: not a bound"
    assert answer["relaxed_variance"] <= answer["variance_bound"] + 1e-9
    assert answer["variance_lower_bound"] <= answer["relaxed_variance"] + 1e-9
    assert answer["lp_variance_bound"] >= answer["relaxed_variance"]
    assert answer["assumptions"]
    linf = answered(ask, "variance", "--quantizer", "qsgdinf", "--bucket-size", "512")
    assert linf["variance_bound"] == pytest.approx(1.190, abs=1e-3)
    assert not {"theorem4_printed", "relaxed_variance"} & set(linf)


def test_variance_of_a_vector_stays_below_its_bound(ask: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "equal.npy", np.ones(512))
    answer = answered(ask, "variance", "--bits", "3", "--bucket-size", "512", "--data", "equal.npy")
    assert answer["expected_variance"] == pytest.approx(math.sqrt(512) / 4 - 1)
    assert answer["expected_variance"] <= answer["variance_bound"] * (1 + 1e-12)


def test_options_become_the_grid(ask: Command) -> None:
    def levels(*options: str) -> list[float]:
        return answered(ask, "variance", *options)["levels"]

    assert levels("--quantizer", "qsgd", "--bits", "3") == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert levels("--levels", "0,0.1,1") == [0, 0.1, 1]
    assert levels("--bits", "3", "--ratio", "0.25") == [0, 0.0625, 0.25, 1]
    answer = answered(ask, "variance", "--bits", "3", "--norm", "linf")
    assert answer["subject"].endswith("linf norm")
    assert answer["variance_bound"] == pytest.approx(2.370, abs=1e-3)


def test_worst_case_names_the_vector(ask: Command) -> None:
    answer = answered(ask, "worst-case", "--bits", "3", "--bucket-size", "32")
    assert answer["worst_case_variance"] == pytest.approx(0.546338193, abs=1e-8)
    assert answer["counts"] == [31, 0, 1]
    assert answer["magnitudes"] == pytest.approx([0.12217, 0, 0.73302], abs=1e-5)
    large = answered(ask, "worst-case", "--bits", "8", "--bucket-size", "1000000000")
    assert large["relaxed_variance"] <= large["variance_bound"] * (1 + 1e-9)
    if large["worst_case_variance"] is None:
        assert "upper bound" in large["notes"]["worst_case_variance"]


def test_code_length_separates_guarantees_from_measurements(ask: Command) -> None:
    answer = answered(
        ask, "code-length", "--bits", "3", "--bucket-size", "4096", "--data", "laplace"
    )
    assert answer["fixed_width_bits"] == 3 + 32 / 4096
    assert answer["elias_bits_bound"] == pytest.approx(3872 / 4096, rel=1e-3)
    assert answer["notes"]["theorem5_printed"].endswith("no bound")
    assert answer["entropy_bits"] <= answer["expected_elias_bits"] <= answer["elias_bits_bound"]
    assert answer["entropy_bits"] <= answer["huffman_bits"] <= answer["entropy_bits"] + 1
    assert 0 < answer["zeros"] < 1
    for codec in ("rans", "huffman", "huffman_pairs", "elias_omega", "context"):
        # Rounding anew, tables and headers: not below the entropy of the mean by more than that.
        assert answer["entropy_bits"] < answer[f"measured_{codec}_bits"] + 0.02
    assert answer["measured_rans_bits"] < answer["entropy_bits"] + 0.05
    assert answer["measured_elias_omega_bits"] == pytest.approx(
        answer["expected_elias_bits"], rel=0.02
    )
    other = answered(ask, "code-length", "--quantizer", "qsgd")
    assert other["elias_bits_bound"] > 0
    assert "theorem5_printed" not in other


def test_published_formulas_stand_beside_what_holds(ask: Command) -> None:
    answer = answered(ask, "published", "--bits", "3", "--dimension", "65536")
    assert answer["theorem4_printed"] == pytest.approx(64 - 7 / 8)
    assert answer["variance_bound"] == pytest.approx(64 - 1)
    assert answer["theorem4_counterexample"] < answer["theorem4_counterexample_variance"]
    assert round(answer["theorem5_printed"]) == 12662
    assert round(answer["elias_bits_bound"]) == 17440
    assert answer["theorem5_printed"] < answer["theorem5_equal_bits"] < answer["elias_bits_bound"]
    assert answer["lemma17_printed"] == 16 + answer["expected_nonzeros_bound"]
    assert answer["theorem13_ratio"] < 1
    assert answer["theorem23_exponential"] < answer["theorem23_uniform"]
    short = answered(ask, "published", "--bits", "2", "--dimension", "4")
    assert short["theorem5_printed"] is None
    assert "theorem4_counterexample" not in short
    assert "theorem13_ratio" not in answered(ask, "published", "--bits", "5", "--dimension", "512")


def test_best_levels_are_no_worse(ask: Command) -> None:
    for norm in ("l2", "linf"):
        answer = answered(ask, "optimal-levels", "--bits", "3", "--norm", norm, "--data", "laplace")
        assert answer["optimal_ratio_variance_bound"] <= answer["variance_bound"]
        assert answer["minimax_variance_bound"] <= answer["optimal_ratio_variance_bound"] + 1e-9
        assert answer["optimal_expected_variance"] <= answer["expected_variance"]
    ternary = answered(ask, "optimal-levels", "--bits", "2", "--data", "gauss")
    assert ternary["minimax_levels"] == [0, 1]
    assert "optimal_ratio" not in ternary


CONSTANTS = {
    "convex": ("--smoothness", "1", "--distance", "2", "--second-moment", "1"),
    "nonconvex": ("--smoothness", "1", "--start-gap", "1", "--second-moment", "1"),
    "momentum-convex": ("--distance", "2", "--start-gap", "1", "--second-moment", "1",
                        "--gradient-norm", "1", "--method", "nesterov"),
    "momentum": ("--smoothness", "1", "--start-gap", "1", "--variance", "1",
                 "--gradient-norm", "1"),
    "asynchronous": ("--smoothness", "1", "--start-gap", "1", "--second-moment", "1",
                     "--delay", "4"),
}  # fmt: skip


@pytest.mark.parametrize("problem", CONSTANTS)
def test_steps_of_every_problem(ask: Command, problem: str) -> None:
    tokens = ("steps", "--problem", problem, *CONSTANTS[problem], "--dimension", "1000")
    answer = answered(ask, *tokens, "--bits", "3", "--bucket-size", "512")
    assert answer["met"] is True
    assert answer["steps"] >= answer["exact_steps"] > 0
    # Three bits a component, and the norms of two buckets, from each of four ranks.
    assert answer["bits"] == answer["steps"] * 4 * (3 * 1000 + 2 * 32)
    assert answer["exact_bits"] == answer["exact_steps"] * 4 * 32 * 1000
    assert answer["relative_variance"] == pytest.approx(4.657, abs=2e-3)
    assert answer["assumptions"]


def test_the_code_decides_the_bits_of_a_step(ask: Command) -> None:
    tokens = ("--bits", "3", "--bucket-size", "4096", "--dimension", "8200")
    counted = [
        answered(ask, "steps", *CONSTANTS["convex"], *tokens, "--code", code)
        for code in ("fixed", "elias")
    ]
    assert counted[0]["steps"] == counted[1]["steps"]
    # Two whole buckets of 4096 and one of 8.
    fixed, elias = (answer["bits"] / answer["steps"] / 4 for answer in counted)
    assert fixed == 3 * 8200 + 3 * 32
    expected = 2 * theory.elias_bits_bound(4096, 2) + theory.elias_bits_bound(8, 2)
    assert elias == pytest.approx(expected)


def test_the_relative_form_and_a_short_gradient(ask: Command) -> None:
    tokens = ("steps", "--problem", "nonconvex", "--smoothness", "1", "--start-gap", "1")
    answer = answered(ask, *tokens, "--noise", "relative", "--variance", "1", "--dimension", "4")
    assert answer["met"] is True
    assert answer["relative_variance"] < 0.13


def test_an_assumption_that_is_not_met_gives_no_number(ask: Command) -> None:
    tokens = ("steps", "--problem", "convex", "--smoothness", "1", "--distance", "1")
    answer = answered(ask, *tokens)
    assert (answer["met"], answer["steps"], answer["bits"]) == (False, None, None)
    assert "second_moment" in answer["notes"]["met"]
    assert "no bound on the variance" in ask(*tokens).out


def test_a_ring_of_four_does_not_meet_the_published_condition(ask: Command) -> None:
    answer = answered(ask, "decentralised", "--topology", "ring", "--ranks", "4")
    assert (answer["printed_met"], answer["met"], answer["steps"]) == (False, False, None)
    assert answer["printed_limit"] == pytest.approx(0.0625)
    assert "is not below" in answer["notes"]["met"]
    weaker = answered(ask, "decentralised", "--condition", "contraction")
    assert (weaker["printed_met"], weaker["met"]) == (False, True)
    assert weaker["steps"] > 0
    complete = answered(ask, "decentralised", "--topology", "complete")
    assert complete["met"] is True
    assert complete["notes"]["bits"] == "12 messages a step"


def test_compare_sets_quantizers_side_by_side(ask: Command) -> None:
    tree = answered(ask, "compare", "--bits", "3", "--bucket-size", "512", "--data", "gauss")
    rows = {row["quantizer"]: row for row in tree["rows"]}
    assert rows["nuqsgd l2"]["variance_bound"] == pytest.approx(4.657, abs=1e-3)
    assert rows["qsgd l2"]["variance_bound"] == pytest.approx(6.543, abs=1e-3)
    assert rows["qsgdinf linf"]["variance_bound"] == pytest.approx(3.301, abs=1e-3)
    eden, natural = rows.pop("eden, buckets of 512"), rows.pop("natural (9 bits)")
    assert eden["expected_variance"] == pytest.approx(0.0358, abs=1e-4)
    assert eden["bits_ratio"] == pytest.approx(1.0358 * (3 + 1 / 16) / 32, rel=1e-4)
    assert natural["variance_bound"] == 1 / 8
    terngrad, dither = rows.pop("terngrad"), rows.pop("dither, step 1 rms")
    assert terngrad["variance_bound"] == pytest.approx((math.sqrt(512) - 1) / 2)
    assert dither["expected_variance"] == 1 / 12
    assert dither["variance_bound"] == pytest.approx(512 / 9 / 12)
    for row in rows.values():
        assert row["expected_variance"] <= row["variance_bound"]
        least = min(row["variance_bound"], row.get("relaxed_variance", math.inf))
        assert row["bits_ratio"] == pytest.approx((1 + least) * (3 + 1 / 16) / 32)
    # Means over ten million Gaussian components, computed bucket by bucket.
    assert rows["nuqsgd l2"]["expected_variance"] == pytest.approx(3.516, rel=0.02)
    assert rows["qsgdinf linf"]["expected_variance"] == pytest.approx(0.1970, rel=0.02)
    table = ask("compare", "--bits", "3", "--bucket-size", "512").out.splitlines()
    assert "entropy bits" not in table[1]
    assert len({len(line) for line in table[2:-1]}) == 1


def test_budget_says_what_pays(ask: Command) -> None:
    # v < b / (A + b) only for the second layer; alone it would be computed to a quarter.
    rest = ("--other-seconds", "1")
    tokens = ("--added-variances", "0.9,0.0625", "--layer-seconds", "1e-9,1", *rest)
    answer = answered(ask, "budget", *tokens)
    assert answer["rates"] == pytest.approx([1, 0.258], abs=1e-3)
    assert answer["step_seconds"] == pytest.approx(1.258, abs=1e-3)
    assert (answer["pays"], answer["noise_share"]) == (True, 1.0)
    assert answer["time_ratio"] < 1
    noisy = answered(ask, "budget", *tokens, "--batch-size", "128", "--noise-scale", "384")
    assert noisy["noise_share"] == 0.75
    assert noisy["time_ratio"] < answer["time_ratio"]
    never = answered(ask, "budget", "--added-variances", "5", "--layer-seconds", "1", *rest)
    assert (never["rates"], never["pays"]) == ([1.0], False)


def test_plot_writes_files_that_need_nothing_else(ask: Command, tmp_path: Path) -> None:
    tree = answered(ask, "plot", "--out", "figures", "--bits", "2", "--bucket-size", "64")
    assert list(tree["figures"]) == ["levels", "ratio", "bounds"]
    for name, facts in tree["figures"].items():
        text = (tmp_path / facts["path"]).read_text()
        assert facts["path"] == f"figures/{name}.svg"
        assert text.startswith("<svg ")
        assert "var(" not in text


@pytest.mark.parametrize(
    ("tokens", "facts"),
    [
        (("varience",), ("varience", "variance", "theory --help")),
        (("variance", "--bit", "4"), ("--bit", "--bits", "theory variance --help")),
        (("variance", "--bits", "-3"), ("bits from 2 to 8", "bits=-3")),
        (("variance", "--bucket-size", "0"), ("--bucket-size 0", "from 1 to 1,000,000,000")),
        (("variance", "--bucket-size", str(10**10)), ("from 1 to 1,000,000,000",)),
        (("variance", "--quantizer", "nuqgsd"), ("did you mean 'nuqsgd'",)),
        (("variance", "--norm", "l3"), ("unknown norm 'l3'", "l2, linf")),
        (("variance", "--ratio", "2"), ("0 < ratio < 1",)),
        (("variance", "--quantizer", "qsgd", "--ratio", "0.3"), ("only nuqsgd has a ratio",)),
        (("variance", "--levels", "0,a,1"), ("--levels 0,a,1", "separated by commas")),
        (("variance", "--levels", "0,0.5"), ("ascend strictly from 0 to 1",)),
        (("variance", "--levels", ""), ("separated by commas",)),
        (("variance", "--data", "missing.npy"), ("missing.npy", "gauss, laplace")),
        (("code-length", "--data", "gauss", "--bucket-size", "2000000"), ("at most 1,048,576",)),
        (("worst-case", "--norm", "linf"), ("knows the l2 norm, got linf",)),
        (("steps", "--problem", "convx"), ("did you mean 'convex'",)),
        (("steps", "--problem", "momentum"), ("needs --smoothness and --start-gap",)),
        (("steps", "--method", "nestrov"), ("did you mean 'nesterov'",)),
        (("steps", *CONSTANTS["convex"], "--code", "elyas"), ("did you mean 'elias'",)),
        (("steps", "--dimension", "0"), ("--dimension 0", "from 1 to 10^12")),
        (("steps", *CONSTANTS["convex"], "--target", "nan"), ("target", "1e-30")),
        (("decentralised", "--ranks", "513"), ("from 1 to 512", "world_size=513")),
        (("decentralised", "--topology", "rings"), ("did you mean 'ring'",)),
        (("decentralised", "--condition", "weak"), ("contraction, printed",)),
        (("budget", "--added-variances", "1"), ("--layer-seconds", "budget --help")),
        (
            ("budget", "--added-variances", "1,2", "--layer-seconds", "1", "--other-seconds", "1"),
            ("2",),
        ),
        (
            (
                "budget",
                "--added-variances",
                "1",
                "--layer-seconds",
                "1",
                "--other-seconds",
                "1",
                "--batch-size",
                "1",
            ),
            ("--batch-size and --noise-scale together",),
        ),
        (("published", "--bits", "6"), ("--bits 6", "from 2 to 5")),
        (("published", "--dimension", "1"), ("--dimension 1", "from 2 to")),
        (("plot", "--bits", "6"), ("bits = 6", "2 to 5")),
        (("plot", "--bucket-size", "1"), ("bucket_size = 1",)),
    ],
)
def test_wrong_questions_are_answered_in_one_line(
    ask: Command, tokens: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    refused(ask(*tokens), *facts)


def test_vectors_are_read_from_files_of_both_kinds(ask: Command, tmp_path: Path) -> None:
    vector = torch.randn(3000, generator=torch.Generator().manual_seed(1))
    torch.save(vector, tmp_path / "v.pt")
    np.save(tmp_path / "v.npy", vector.numpy())
    found = [answered(ask, "variance", "--data", f"v.{kind}") for kind in ("pt", "npy")]
    assert found[0]["expected_variance"] == found[1]["expected_variance"]
    # Whole buckets only: 5 x 512 of 3000.
    assert found[0]["notes"]["expected_variance"] == "v.pt: 2,560 of 3,000 components"
    short = answered(ask, "variance", "--data", "v.npy", "--bucket-size", "4096")
    assert short["notes"]["expected_variance"] == "v.npy: 3,000 components"


def test_named_tensors_have_buckets_of_their_own(ask: Command, tmp_path: Path) -> None:
    tensors = {"a": torch.ones(4, 130), "bias": torch.ones(10), "b": torch.full((512,), 1e-3)}
    torch.save(tensors, tmp_path / "named.pt")
    answer = answered(ask, "variance", "--bits", "3", "--data", "named.pt")
    # One bucket of each long tensor, of equal components both: a shared one would add less.
    assert answer["notes"]["expected_variance"] == "named.pt: 1,024 of 1,042 components"
    assert answer["expected_variance"] == pytest.approx(math.sqrt(512) / 4 - 1)


def test_long_lists_are_shortened_in_tables_only(ask: Command) -> None:
    table = ask("variance", "--bits", "5").out
    assert "0, 6.104e-05, 0.0001221, 0.0002441, 0.0004883, 0.0009766, 0.001953, ..., 1" in table
    assert len(answered(ask, "variance", "--bits", "5")["levels"]) == 16


def test_files_that_hold_no_vector_are_refused(ask: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "zero.npy", np.zeros(100))
    np.save(tmp_path / "text.npy", np.array(["a", "b"]))
    np.save(tmp_path / "object.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    late = np.zeros(2**21)
    late[2**19 + 1] = 1.0
    np.save(tmp_path / "late.npy", late)
    (tmp_path / "garbage.pt").write_bytes(b"no tensor")
    torch.save({"a": torch.ones(3), "b": "text"}, tmp_path / "dict.pt")
    for name in ("zero.npy", "text.npy", "object.npy", "garbage.pt", "dict.pt"):
        refused(ask("variance", "--data", name), f"--data {name}")
    refused(ask("variance", "--data", "late.npy", "--bucket-size", "524288"), "only zeros")
