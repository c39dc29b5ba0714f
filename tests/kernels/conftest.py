"""Which files of this folder are not collected."""

import os

# test_triton.py runs them in processes of their own, where this is set before Triton is imported.
collect_ignore = (
    [] if "TRITON_INTERPRET" in os.environ else ["triton_checks.py", "triton_compile_checks.py"]
)
