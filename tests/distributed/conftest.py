"""The programs the ranks run made importable, here and in the processes that are started."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
