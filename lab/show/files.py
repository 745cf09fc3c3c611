"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replace ``path`` in one step; an interruption leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
    ) as part:
        temporary = Path(part.name)
        try:
            part.write(content)
            part.flush()
            os.fsync(part.fileno())
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    # mkstemp makes files for the owner alone; a figure is meant to be published.
    temporary.chmod(0o644)
    temporary.replace(path)
