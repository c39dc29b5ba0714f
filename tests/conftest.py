from __future__ import annotations

import sys
from pathlib import Path

# sample_records.py holds what the tests of reports, progress and commands share.
sys.path.insert(0, str(Path(__file__).parent))
