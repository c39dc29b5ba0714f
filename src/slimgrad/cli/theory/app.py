"""``slimgrad theory``: what the methods promise, as numbers with their assumptions."""

from __future__ import annotations

from cyclopts import App

from slimgrad.cli.theory.budget import budget
from slimgrad.cli.theory.code_length import code_length
from slimgrad.cli.theory.compare import compare
from slimgrad.cli.theory.decentralised import decentralised
from slimgrad.cli.theory.levels import optimal_levels
from slimgrad.cli.theory.plot import plot
from slimgrad.cli.theory.published import published
from slimgrad.cli.theory.steps import steps
from slimgrad.cli.theory.variance import variance, worst_case

# Question -> (what answers it, example).
QUESTIONS = {
    "variance": (variance, "slimgrad theory variance --bits 4 --bucket-size 512 --norm l2"),
    "worst-case": (worst_case, "slimgrad theory worst-case --levels 0,0.25,0.5,1 --bucket-size 32"),
    "code-length": (code_length, "slimgrad theory code-length --bits 4 --data laplace"),
    "optimal-levels": (
        optimal_levels,
        "slimgrad theory optimal-levels --bits 3 --bucket-size 8192 --data laplace",
    ),
    "steps": (
        steps,
        "slimgrad theory steps --problem convex --target 0.1 --smoothness 1 \\\n"
        "    --distance 1 --second-moment 1 --ranks 4 --quantizer nuqsgd --bits 4",
    ),
    "decentralised": (decentralised, "slimgrad theory decentralised --topology ring --ranks 4"),
    "budget": (
        budget,
        "slimgrad theory budget --added-variances 0.3,0.02 --layer-seconds 0.1,0.2 \\\n"
        "    --other-seconds 0.5",
    ),
    "compare": (compare, "slimgrad theory compare --bits 4 --bucket-size 512 --data gauss"),
    "published": (published, "slimgrad theory published --bits 3 --dimension 65536"),
    "plot": (plot, "slimgrad theory plot --out theory-figures"),
}


def make_theory_app() -> App:
    """The command with one subcommand for each question."""
    examples = "\n".join(example for _, example in QUESTIONS.values())
    app = App(
        name="theory",
        help="Say what the methods promise: variance, bits, steps, with the assumptions.",
        help_format="markdown",
        help_epilogue=f"Examples:\n\n```sh\n{examples}\n```",
    )
    for name, (answer, example) in QUESTIONS.items():
        app.command(answer, name=name, help_epilogue=f"Examples:\n\n```sh\n{example}\n```")
    return app
