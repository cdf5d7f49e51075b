"""Every limit on what one visitor may ask for, whatever a browser sends; each is checked on the server.

The largest scene they allow together stays under 300 MB of memory beyond the idle app, and 2 s of script time
(`python -m benchmarks.largest`).
"""

from models.block import MOST_BLOCKS

MAX_CHARACTERS = 100_000
"""Of one text: some fifty pages. More is not even cut into tokens."""

MAX_TOKENS = 512
"""Of one text: a page, and still a map one can make out."""

MAX_WEIGHTS = 2**21
"""Layers × heads × queries × keys: four such arrays are 32 MB, and the drawing stays fluent."""

KEPT_SCENES, KEPT_STACKS = 4, 1
"""Results kept for all visitors together; the largest scene is 43 MB, a stack about as much for each layer."""

KEPT_LAYERS = 2
"""Random layers kept for all visitors together, and torch's twins of layers, each as many: another text asks the same one. The
largest layer is 8 MB, its twin 34."""

MAX_TERMS = 2**12
"""Products of q·k written out at once, keys × head_dim; of more keys the heaviest are."""

MAX_NUMBERS = 2**18
"""Numbers that a page holds ready to walk through any of its queries: about a megabyte. Where there are more, the server is
asked for those of a query when it is chosen."""

MAX_HEADS = 16
MAX_WIDTH = 512
"""Of embed_dim, head_dim, kdim and vdim: the base model of Vaswani et al. 2017."""

MAX_INNER = 1024
"""Heads × head_dim, the columns of W_Q: 16 heads of 64, as in the large model of Vaswani et al. 2017."""

MAX_LAYERS = MOST_BLOCKS

MAX_SEED = 10**6

MAX_TRAININGS = 2
"""Trainings in the page at one time, of all visitors: each takes a core."""

MAX_SECONDS = 90
"""Of one training in the page; it takes about a quarter of it on a quiet machine."""

MAX_RUN_BYTES = 2**27
"""Of the runs of the pretrained model that are kept for all visitors: some dozens of sentences. The latest always is."""

MAX_RUN_WEIGHTS = 10 * 2**20
"""Of one run of the pretrained model, layers × heads × pieces²: every step of every head is kept, some 22 bytes a weight."""

MAX_MAPS = 2**21
"""Weights of all layers drawn at once; of a longer text those of one layer are."""
