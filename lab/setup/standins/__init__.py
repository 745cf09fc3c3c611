"""Stand-ins: models of another architecture that compute the same function as a given one.

Two published models differ in everything at once. A stand-in differs from its source in
one thing only, so that a difference in speed has one cause:

- ``moe``: every feed-forward network copied into E experts behind a router. The text is
  the same, one expert is read a token, and a pass over several tokens reads several.
- ``deep``: blocks that add nothing put between the real ones. The text is the same, every
  byte is read for every token: a dense model of the size of the mixture.

They are made by copying quantised bytes, kept in the models folder under a digest of
source and recipe, labelled in their metadata, and checked against their source; what
the check found is kept in a JSON file beside the model.
"""

from lab.setup.standins.idle_blocks import deep
from lab.setup.standins.mixture import moe

__all__ = ["deep", "moe"]
