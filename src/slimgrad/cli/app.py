"""The ``slimgrad`` command: finds the subcommand, and turns every error into one line.

Exit codes: 0 done, 1 a self-check failed or slimgrad did, 2 wrong input or a failed worker,
130 interrupted.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from cyclopts import App, CycloptsError

from slimgrad.cli.compare import compare
from slimgrad.cli.doctor import doctor
from slimgrad.cli.probe import probe
from slimgrad.cli.theory.app import QUESTIONS, make_theory_app
from slimgrad.cli.train import train
from slimgrad.core.errors import SlimgradError, SlimgradWarning

_DEBUG = "--debug"


def version() -> str:
    """Version of the installed package.

    >>> " " in version() and "not installed" not in version()
    False
    """
    try:
        return importlib.metadata.version("slimgrad")
    except importlib.metadata.PackageNotFoundError:
        return "unknown (slimgrad is not installed)"


_EXAMPLES = {
    "": (
        "slimgrad compare --recipe digits --out demo",
        "slimgrad train --data digits --quantizer nuqsgd --bits 4 --workers 2",
        "slimgrad doctor",
    ),
    "train": (
        "slimgrad train --data digits --epochs 3 --out runs/first",
        "slimgrad train --data folders --data-dir cifar10 --model resnet20 \\\n"
        "    --estimator topone --schedule every_nth_layer:n=4,start=2 \\\n"
        "    --quantizer nuqsgd --bits 4 --workers 2 --out runs/both",
        "slimgrad train --data digits --workers 2 --quantizer topk:keep=0.01 --values eden \\\n"
        "    --feedback error --out runs/sparse",
        "slimgrad train --config runs/first.toml --resume",
        "torchrun --nproc-per-node 2 -m slimgrad train --data digits --seed 1",
    ),
    "compare": (
        "slimgrad compare --recipe digits --out demo",
        "slimgrad compare --recipe digits --seeds 0-4 --json > summary.json",
        "slimgrad compare --config mine.toml --out runs/mine --resume",
    ),
    "probe": (
        'slimgrad probe gradient --model resnet14 --estimators "topone random:scale=0.01"',
        "slimgrad probe gradient --model cnn2 --train-steps 200",
        "slimgrad probe compression --quantizer nuqsgd:bits=4",
        "slimgrad probe compression --quantizer qsgdinf:bits=3 --gradients mine.pt",
    ),
    "doctor": ("slimgrad doctor", "slimgrad doctor --json"),
}


def make_app() -> App:
    """The command line."""
    app = App(
        name="slimgrad",
        help="Train with cheaper gradients, and measure whether it pays.",
        version=version,
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        help_format="markdown",
        help_epilogue=f"{_examples('')}\n\nAdd --debug to any command to see a traceback.",
    )
    for command in (train, compare, doctor):
        app.command(command, help_epilogue=_examples(command.__name__))
    probe.help_epilogue = _examples("probe")
    app.command(probe)
    app.command(make_theory_app())
    return app


def run(tokens: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code.

    Args:
        tokens: arguments; those of the process when None.
    """
    given = list(sys.argv[1:] if tokens is None else tokens)
    sys.exit(execute([token for token in given if token != _DEBUG], debug=_DEBUG in given))


def execute(tokens: Sequence[str], *, debug: bool = False) -> int:
    """Run one command; its exit code. Errors become one line on stderr unless ``debug``."""
    for stream in (sys.stdout, sys.stderr):
        _tolerate_narrow_encodings(stream)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning(warnings.showwarning)
        try:
            result = make_app()(tokens, exit_on_error=False, print_error=False)
            sys.stdout.flush()
        except KeyboardInterrupt:
            return _fail("interrupted", 130, debug)
        except BrokenPipeError:
            # The reader of our output is gone; what Python would still flush has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except CycloptsError as error:
            return _fail(f"{_one_line(error)} See: slimgrad {_asked(tokens)}--help", 2, debug)
        except SlimgradError as error:
            return _fail(_one_line(error), 2, debug)
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            return _fail(place + _one_line(error.strerror or str(error)), 2, debug)
        except ModuleNotFoundError as error:
            text = f"needs the package {error.name!r}; install it with: pip install 'slimgrad[cli]'"
            return _fail(text, 2, debug)
        except Exception as error:
            text = f"{type(error).__name__}: {_one_line(error)}"
            return _fail(f"unexpected error, please report it with {_DEBUG}: {text}", 1, debug)
    return result if isinstance(result, int) else 0


def _asked(tokens: Sequence[str]) -> str:
    """The words of ``tokens`` that name a command, each with a space behind it."""
    known = {"theory": QUESTIONS, **{name: {} for name in _EXAMPLES if name}}
    if not tokens or tokens[0] not in known:
        return ""
    deeper = f"{tokens[1]} " if tokens[1:] and tokens[1] in known[tokens[0]] else ""
    return f"{tokens[0]} {deeper}"


def _examples(command: str) -> str:
    lines = "\n".join(_EXAMPLES[command])
    return f"Examples:\n\n```sh\n{lines}\n```"


def _fail(text: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"slimgrad: {text}", file=sys.stderr)
    return code


def _one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split())


def _tolerate_narrow_encodings(stream: TextIO) -> None:
    """Print a replacement where a terminal cannot show a character, instead of failing."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _show_warning(usual: Callable[..., None]) -> Callable[..., None]:
    """One line for slimgrad's own warnings, without file names; the usual text for others."""

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, SlimgradWarning):
            print(f"slimgrad: warning: {_one_line(message)}", file=sys.stderr)
        else:
            usual(message, category, *place)

    return show
