"""An encoder and a decoder of one layer each (Vaswani et al. 2017, figure 1), norms in front, one head between them."""

from torch import Tensor, nn

from models.masks import causal, padding
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.trained.layers import feed_forward
from models.trained.record import Watch
from models.trained.training import Model
from models.trained.translation.data import ENGLISH, FRENCH, MOST_ENGLISH, MOST_FRENCH

WIDTH, HEADS, HIDDEN, NOTE = 64, 4, 128, 2


class Translator(Model):
    """Predicts each French word from the English sentence and the French words before it.

    The cross-attention's keys are all that the encoder made of the sentence; its values are the English words as
    they are, with a note of three numbers from the encoder, enough for a gender and too little for another word.
    """

    def __init__(self) -> None:
        super().__init__()
        self.english = nn.Embedding(len(ENGLISH), WIDTH)
        self.english_place = nn.Embedding(MOST_ENGLISH, WIDTH)
        self.french = nn.Embedding(len(FRENCH), WIDTH)
        self.french_place = nn.Embedding(MOST_FRENCH, WIDTH)
        self.encoder = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH, num_heads=HEADS))
        self.encoder_norm = nn.LayerNorm(WIDTH)
        self.encoder_feed_forward = feed_forward(WIDTH, HIDDEN)
        self.memory_norm = nn.LayerNorm(WIDTH)
        self.note = nn.Sequential(nn.Linear(WIDTH, NOTE), nn.Tanh(), nn.Linear(NOTE, WIDTH))
        self.decoder = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH, num_heads=HEADS))
        self.decoder_norm = nn.LayerNorm(WIDTH)
        self.cross = MultiHeadAttention(AttentionConfig(embed_dim=WIDTH))
        self.cross_norm = nn.LayerNorm(WIDTH)
        self.decoder_feed_forward = feed_forward(WIDTH, HIDDEN)
        self.last_norm = nn.LayerNorm(WIDTH)

    def encode(self, english: Tensor, watch: Watch) -> tuple[Tensor, Tensor]:
        """What the decoder may look for, and what it finds there: `batch key` -> twice `batch key embed`."""
        word = self.english(english)
        x = word + self.english_place.weight[: english.shape[1]]
        x = x + watch("encoder", self.encoder, self.encoder_norm(x), visible=padding(english != 0))
        memory = self.memory_norm(x + self.encoder_feed_forward(x))
        return memory, word + self.note(memory)

    def decode(self, french: Tensor, memory: tuple[Tensor, Tensor], visible: Tensor | None, watch: Watch) -> Tensor:
        """Logits of the word after each: `batch query` -> `batch query vocabulary`.

        memory: what `encode` gave.
        visible: True where a French word may look at an English one; broadcasts to `batch head query key`;
            None is everywhere.
        """
        length = french.shape[1]
        x = self.french(french) + self.french_place.weight[:length]
        x = x + watch("decoder", self.decoder, self.decoder_norm(x), visible=causal(length, length))
        x = x + watch("cross", self.cross, self.cross_norm(x), *memory, visible=visible)
        x = x + self.decoder_feed_forward(x)
        return self.last_norm(x) @ self.french.weight.T

    def forward(self, english: Tensor, french: Tensor, watch: Watch) -> Tensor:
        """Both at once, no English word hidden but padding: `batch query vocabulary`."""
        return self.decode(french, self.encode(english, watch), padding(english != 0), watch)
