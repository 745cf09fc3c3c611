"""Where things are: every path the lab uses, named once."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(os.environ.get("LAB_ROOT", Path(__file__).resolve().parent.parent))
"""The checkout. Set LAB_ROOT when the package is installed elsewhere."""

NOTEBOOKS = ROOT / "notebooks"
PROFILES = ROOT / "profiles"
PROMPTS = ROOT / "data" / "prompts"
REFERENCE = ROOT / "data" / "reference"
FIGURES = ROOT / "figures"
RESULTS = Path(os.environ.get("LAB_RESULTS", ROOT / "results"))
ENGINE = Path(os.environ.get("LAB_ENGINE", ROOT / ".engine"))
"""Built engines, one folder a (source digest, build options) pair."""

MODELS = Path(os.environ.get("LAB_MODELS", ROOT / ".models"))
"""The embedded model, stand-ins made from it and downloads, named by digest."""
