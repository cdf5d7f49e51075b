"""Two models that say what "it" means: one whose maps show how, and an ordinary one that is as often right."""

from torch import Tensor, nn

from models.masks import padding
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trained.coreference.data import LENGTH, PAD, WORDS
from models.trained.layers import feed_forward
from models.trained.record import Watch
from models.trained.training import Model

WIDTH, HIDDEN = 48, 96
IT = WORDS.index("it")
_LOUD = 3.0


class _Reader(Model):
    """What both have: words, places, and two layers of one head."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(len(WORDS) + 1, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.first, self.second = (MultiHeadAttention(AttentionConfig(embed_dim=WIDTH)) for _ in range(2))
        self.first_norm, self.second_norm = (nn.LayerNorm(WIDTH) for _ in range(2))
        self.feed_forward = feed_forward(WIDTH, HIDDEN)

    def placed(self, words: Tensor) -> Tensor:
        """Words with their places: `batch token` -> `batch token embed`."""
        return self.word(words) + self.place.weight[: words.shape[1]]


class Readable(_Reader):
    """Only "it" asks, in "first" by place and in "second" by what "first" handed on.

    Both layers hand on words as they are, and the answer is nothing but what "second" hands on.
    """

    def begin(self) -> None:
        """Words begin louder than a model's usually do, and what "second" hands on begins as the word itself."""
        self.word.weight.mul_(_LOUD)
        self.place.weight.mul_(_LOUD)
        nn.init.eye_(self.second.to_v.weight)
        nn.init.eye_(self.second.to_output.weight)

    def forward(self, words: Tensor, watch: Watch) -> Tensor:
        """`batch token` -> logits of the word that "it" means, `batch vocabulary`."""
        word, visible = self.word(words), padding(words != PAD)
        place = self.first_norm(self.place.weight[: words.shape[1]]).expand_as(word)
        it = watch("first", self.first, at_it(words, place), place, word, visible=visible)
        asking = self.second_norm(it + self.feed_forward(it))
        answer = watch("second", self.second, asking, self.first_norm(self.placed(words)), word, visible=visible)
        return (answer @ self.word.weight[:PAD].T)[:, 0]


class Ordinary(_Reader):
    """Two layers as anyone would stack them, in which every word asks and hands on whatever it has gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.second_feed_forward = feed_forward(WIDTH, HIDDEN)
        self.last_norm = nn.LayerNorm(WIDTH)
        self.readout = nn.Linear(WIDTH, len(WORDS))

    def forward(self, words: Tensor, watch: Watch) -> Tensor:
        """`batch token` -> logits of the word that "it" means, `batch vocabulary`."""
        x, visible = self.placed(words), padding(words != PAD)
        x = x + watch("first", self.first, self.first_norm(x), visible=visible)
        x = x + self.feed_forward(x)
        keys = self.second_norm(x)
        it = at_it(words, x) + watch("second", self.second, at_it(words, keys), keys, visible=visible)
        return self.readout(self.last_norm(it + self.second_feed_forward(it)))[:, 0]


def at_it(words: Tensor, x: Tensor) -> Tensor:
    """The row of "it" alone: `batch token`, `batch token embed` -> `batch 1 embed`."""
    return x[words == IT][:, None]
