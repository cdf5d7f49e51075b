"""The current scene as a script of its own, in three dialects, each giving the trace's `weights` and `output`.

einops is how our module does it, torch is view and transpose, library is torch's own attention. A script
needs torch (and einops in the first) and nothing of this project; only what the scene uses is in it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from inspect import getsource
from math import prod
from pprint import pformat
from textwrap import indent

import torch
from torch import Tensor

from models import embedding, masks, twin, worked_example
from models.multi_head import AttentionConfig
from models.positions import sinusoidal
from models.tokens import PAD

Lines = list[tuple[str, str]]
"""Code, and the axes of what it makes; no axes, no comment."""

PATTERNS = ("causal", "window", "prefix")

_COLUMN = 80  # shapes stand here at the latest; only a longer line pushes its own further


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a script has to build: the layer, what goes into it, and who may look where.

    config: of the layer. queries, keys: the tokens as split, one or more; no keys is self-attention.
    seed: of vectors and weights. worked_example: its vectors and matrices instead of random ones.
    positions: whether sinusoidal positions are added to the vectors.
    pattern: None or one of `PATTERNS`; width is the window's, length the prefix's.
    padding: whether [PAD] is hidden.

    Raises `ValueError` where these do not fit together.
    """

    config: AttentionConfig
    queries: tuple[str, ...]
    keys: tuple[str, ...] | None = None
    seed: int = 0
    worked_example: bool = False
    positions: bool = False
    pattern: str | None = None
    width: int = 1
    length: int = 1
    padding: bool = False

    def __post_init__(self) -> None:
        if not self.queries or not self.key_tokens:
            raise ValueError("queries and keys must have one token or more; got none. Self-attention is keys=None.")
        if self.keys is None and len(set(self.config.input_widths)) > 1:
            raise ValueError(
                f"in self-attention kdim and vdim are embed_dim; got inputs of {self.config.input_widths}. "
                f"Give keys, or leave kdim and vdim out."
            )
        if self.pattern not in (None, *PATTERNS):
            raise ValueError(f"pattern must be None or one of {', '.join(PATTERNS)}; got {self.pattern!r}.")
        if self.worked_example and replace(self.config, scale=worked_example.CONFIG.scale) != worked_example.CONFIG:
            raise ValueError("the worked example has one config, in which only scale may differ; got another.")

    @property
    def key_tokens(self) -> tuple[str, ...]:
        """The tokens looked at: in self-attention those that look."""
        return self.queries if self.keys is None else self.keys

    @property
    def inputs(self) -> tuple[str, str, str]:
        """What a script calls the inputs of queries, keys and values."""
        return ("x", "x", "x") if self.keys is None else ("query", "key", "value")

    @property
    def has_linears(self) -> bool:
        """Whether anything is drawn for the layer, rather than given or left out."""
        return not self.worked_example and (self.config.projections or self.config.output_projection)

    @property
    def copies(self) -> int:
        """How many heads share the keys and values of one."""
        return self.config.num_heads // self.config.kv_heads

    @property
    def hides(self) -> bool:
        """Whether there is a mask at all."""
        return self.pattern is not None or self.padding

    @property
    def visible(self) -> Tensor:
        """`query key`, True where a query may look."""
        queries, keys = len(self.queries), len(self.key_tokens)
        pattern = {
            None: lambda: torch.ones(queries, keys, dtype=torch.bool),
            "causal": lambda: masks.causal(queries, keys),
            "window": lambda: masks.window(queries, keys, self.width),
            "prefix": lambda: masks.prefix(queries, keys, self.length),
        }[self.pattern]()
        return pattern & torch.tensor([not self.padding or token != PAD for token in self.key_tokens])


def snippets(setting: Setting) -> dict[str, str]:
    """A script for each dialect: "einops", "torch" and "library".

    Run, a script leaves `weights` (`head query key`) and `output` (`query embed`) and prints them.
    """
    obstacles = _obstacles(setting)
    library = _script(setting, "import torch.nn.functional as F", _mask(setting), _by_function(setting, obstacles))
    if not obstacles:
        library = _script(setting, "", _pattern_and_padding(setting), _by_module(setting))
    einops = "from einops import rearrange" + ", repeat" * (setting.copies > 1)
    return {
        "einops": _script(setting, einops, _mask(setting), _by_einops(setting)),
        "torch": _script(setting, "", _mask(setting), _by_view(setting)),
        "library": library,
    }


def _obstacles(setting: Setting) -> tuple[str, ...]:
    blind = "it gives NaN for a query that sees nothing"
    return twin.obstacles(setting.config) + (() if _all_see_something(setting) else (blind,))


def _all_see_something(setting: Setting) -> bool:
    return bool(setting.visible.any(dim=-1).all())


# Parts every dialect has


def _script(setting: Setting, library: str, mask: Lines, attention: str) -> str:
    detached = ".detach()" if setting.has_linears else ""
    printed = f"print(weights{detached})\nprint(output{detached})"
    parts = [_vectors(setting), _commented(setting, mask), _weights(setting), attention, printed]
    main = "\n\n".join(filter(None, parts))
    functions = "".join(f"\n\n{function.strip()}\n" for function in _functions(setting))
    gap = "\n\n" if functions else "\n"
    return f"{_imports(setting, library)}\n{functions}{gap}{main}\n"


def _imports(setting: Setting, library: str) -> str:
    typed = not setting.worked_example or setting.positions
    names = ["Tensor"] * typed + ["nn"] * setting.has_linears
    lines = ["import torch", library, f"from torch import {', '.join(names)}" if names else ""]
    hashing = "" if setting.worked_example else "from hashlib import blake2b\n\n"
    return hashing + "\n".join(filter(None, lines))


def _functions(setting: Setting) -> list[str]:
    draw = [] if setting.worked_example else [getsource(embedding._draw).replace("_draw", "draw")]
    projection = setting.has_linears and setting.config.projections
    return (
        draw
        + [getsource(sinusoidal)] * setting.positions
        + [_PROJECTION.format(bias=_bias(setting.config))] * projection
    )


_PROJECTION = """\
def projection(width: int, out: int) -> nn.Linear:
    linear = nn.Linear(width, out{bias})
    nn.init.xavier_uniform_(linear.weight)
    return linear"""


def _vectors(setting: Setting) -> str:
    names = ("tokens",) if setting.keys is None else ("query_tokens", "key_tokens")
    tokens = [_listed(name, given) for name, given in zip(names, (setting.queries, setting.keys), strict=False)]
    source = f"seed = {setting.seed}"
    if setting.worked_example:
        rows = zip(worked_example.WORDS, worked_example.embed(worked_example.WORDS), strict=True)
        source = f"vectors = {{{', '.join(f'{word!r}: {_numbers(row)}' for word, row in rows)}}}"
    return "\n".join([*tokens, source, _commented(setting, _inputs(setting))])


def _inputs(setting: Setting) -> Lines:
    query, key, value = setting.config.input_widths
    if setting.keys is None:
        return _input(setting, "x", "tokens", query, "query embed_dim")
    lines = _input(setting, "query", "query_tokens", query, "query embed_dim")
    if key == value:
        return lines + _input(setting, "key = value", "key_tokens", key, "key kdim")
    lines += _input(setting, "key", "key_tokens", key, "key kdim")
    return lines + _input(setting, "value", "key_tokens", value, "key vdim")


def _input(setting: Setting, name: str, tokens: str, width: int, axes: str) -> Lines:
    drawn = f"torch.stack([draw(token, {width}, seed) for token in {tokens}])"
    looked_up = f"torch.tensor([vectors[token] for token in {tokens}])"
    lines = [(f"{name} = {looked_up if setting.worked_example else drawn}", axes)]
    first = name.split()[0]
    return lines + [(f"{name} = {first} + sinusoidal(*{first}.shape)", axes)] * setting.positions


def _pattern_and_padding(setting: Setting) -> Lines:
    """The pattern as `visible`, padding as `keep`."""
    tokens = "tokens" if setting.keys is None else "key_tokens"
    band = f".tril({setting.width}).triu({-setting.width})" if setting.pattern == "window" else ".tril()"
    everything = f"torch.ones({len(setting.queries)}, {len(setting.key_tokens)}, dtype=torch.bool)"
    keep = (f'keep = torch.tensor([token != "{PAD}" for token in {tokens}])', "key")
    pattern = (f"visible = {everything}{band}", "query key")
    prefix = (f"visible[:, :{setting.length}] = True", "query key")
    return [keep] * setting.padding + [pattern] * bool(setting.pattern) + [prefix] * (setting.pattern == "prefix")


def _mask(setting: Setting) -> Lines:
    """Pattern and padding in one `visible`."""
    both = "visible & keep" if setting.pattern else f"keep.expand({len(setting.queries)}, {len(setting.key_tokens)})"
    return _pattern_and_padding(setting) + [(f"visible = {both}", "query key")] * setting.padding


def _weights(setting: Setting) -> str:
    config, made = setting.config, worked_example.layer()
    if setting.worked_example:
        given = {"W_q": made.to_q, "W_k": made.to_k, "W_v": made.to_v}
        lines = [(f"{name} = torch.tensor({_numbers(linear.weight.T)})", "") for name, linear in given.items()]
        return f"# {_shape(setting, 'embed_dim head_dim')}\n{_commented(setting, lines)}"
    query, key, value = config.input_widths
    inner, shared = config.num_heads * config.width, config.kv_heads * config.width
    projections = [
        (f"to_q = projection({query}, {inner})", "(head head_dim) embed_dim"),
        (f"to_k = projection({key}, {shared})", "(kv_head head_dim) kdim"),
        (f"to_v = projection({value}, {shared})", "(kv_head head_dim) vdim"),
    ]
    output = (f"to_output = nn.Linear({inner}, {config.embed_dim}{_bias(config)})", "embed_dim (head head_dim)")
    lines = projections * config.projections + [output] * config.output_projection
    return f"torch.manual_seed(seed)\n{_commented(setting, lines)}" if lines else ""


# The dialects


def _by_einops(setting: Setting) -> str:
    heads, shared = setting.config.num_heads, setting.config.kv_heads
    q, k, v = _projected(setting)
    cut = f"repeat({{}}, share, head={shared}, copies={setting.copies})"
    if setting.copies == 1:
        cut = f"rearrange({{}}, split, head={heads})"
    share = ('share = "token (head head_dim) -> (head copies) token head_dim"', "")
    lines = [
        ('split = "token (head head_dim) -> head token head_dim"', ""),
        *[share] * (setting.copies > 1),
        ('merge = "head token head_dim -> token (head head_dim)"', ""),
        (f"q = rearrange({q}, split, head={heads})", "head query head_dim"),
        (f"k = {cut.format(k)}", "head key head_dim"),
        (f"v = {cut.format(v)}", "head key head_dim"),
        *_steps(setting),
        _output(setting, "rearrange(context, merge)"),
    ]
    return _commented(setting, lines)


def _by_view(setting: Setting) -> str:
    q, k, v = _viewed(setting)
    again = f".repeat_interleave({setting.copies}, dim=0)" if setting.copies > 1 else ""
    lines = [
        (q, "head query head_dim"),
        (k + again, "head key head_dim"),
        (v + again, "head key head_dim"),
        *_steps(setting),
        _output(setting, _joined(setting)),
    ]
    return _commented(setting, lines)


def _by_function(setting: Setting, obstacles: Iterable[str]) -> str:
    config, keys, (q, k, v) = setting.config, len(setting.key_tokens), _viewed(setting)
    how = {
        "attn_mask=visible": setting.hides,
        f"scale={_factor(config)}": config.factor != config.width**-0.5,
        "enable_gqa=True": setting.copies > 1,
    }
    given = ", ".join(argument for argument, needed in how.items() if needed)
    sense = "  # in attn_mask, True keeps" if setting.hides else ""
    lines = [
        (q, "head query head_dim"),
        (k, "kv_head key head_dim"),
        (v, "kv_head key head_dim"),
        *[(f"how = dict({given}){sense}", "")] * bool(given),
        (f"context = F.scaled_dot_product_attention(q, k, v{', **how' if given else ''})", "head query head_dim"),
        (f"one_hot = torch.eye({keys}).expand({config.kv_heads}, {keys}, {keys})", "kv_head key key"),
        (f"weights = F.scaled_dot_product_attention(q, k, one_hot{', **how' if given else ''})", "head query key"),
        _output(setting, _joined(setting)),
    ]
    why_not = "".join(f"#     {clause}\n" for clause in obstacles)
    return f"# Not nn.MultiheadAttention:\n{why_not}{_commented(setting, lines)}"


def _by_module(setting: Setting) -> str:
    config = setting.config
    _, kdim, vdim = config.input_widths
    widths = f", kdim={kdim}, vdim={vdim}" if _separate(config) else ""
    state = "".join(f'    "{name}": {code},\n' for name, code in _state(config).items())
    masked = ", attn_mask=~visible" * bool(setting.pattern) + ", key_padding_mask=~keep" * setting.padding
    sense = "# In its masks True hides.\n" if masked else ""
    return (
        f"attention = nn.MultiheadAttention({config.embed_dim}, {config.num_heads}{_bias(config)}{widths})\n"
        f"attention.load_state_dict({{\n{state}}})\n"
        f"{sense}# {_shape(setting, 'query embed_dim')}; {_shape(setting, 'head query key')}\n"
        f"output, weights = attention({', '.join(setting.inputs)}{masked}, average_attn_weights=False)"
    )


def _separate(config: AttentionConfig) -> bool:
    """Whether torch's module keeps three matrices, as it does once widths differ, and not one."""
    return set(config.input_widths) != {config.embed_dim}


def _state(config: AttentionConfig) -> dict[str, str]:
    """The module's own names for its weights, and the code that gives them."""
    one = {"in_proj_weight": "torch.cat([to_q.weight, to_k.weight, to_v.weight])"}
    three = {f"{name}_proj_weight": f"to_{name}.weight" for name in "qkv"}
    state = (three if _separate(config) else one) | {"out_proj.weight": "to_output.weight"}
    if not config.bias:
        return state
    return state | {"in_proj_bias": "torch.cat([to_q.bias, to_k.bias, to_v.bias])", "out_proj.bias": "to_output.bias"}


# Lines the dialects share


def _projected(setting: Setting) -> list[str]:
    """The code for the projections of queries, keys and values, before they are cut into heads."""
    if not setting.config.projections:
        return list(setting.inputs)
    form = "{x} @ W_{name}" if setting.worked_example else "to_{name}({x})"
    activation = f".{setting.config.projection_activation}()" if setting.config.projection_activation else ""
    return [form.format(name=name, x=x) + activation for name, x in zip("qkv", setting.inputs, strict=True)]


def _viewed(setting: Setting) -> list[str]:
    """q, k and v cut into heads by view and transpose; those that heads share are not repeated."""
    config, queries, keys = setting.config, len(setting.queries), len(setting.key_tokens)
    sizes = ((queries, config.num_heads), (keys, config.kv_heads), (keys, config.kv_heads))
    wholes = [f"({code})" if " " in code else code for code in _projected(setting)]
    return [
        f"{name} = {whole}.view({tokens}, {heads}, {config.width}).transpose(0, 1)"
        for name, whole, (tokens, heads) in zip("qkv", wholes, sizes, strict=True)
    ]


def _steps(setting: Setting) -> Lines:
    """From scores to context; a step that changes nothing is left out."""
    steps = {"scores": "q @ k.transpose(-2, -1)"}
    if setting.config.factor != 1.0:
        steps["scaled"] = f"scores * {_factor(setting.config)}"
    if setting.hides:
        steps["masked"] = f"torch.where(visible, {[*steps][-1]}, -torch.inf)"
    steps["weights"] = f"{[*steps][-1]}.softmax(dim=-1)"
    lines = [(f"{name} = {code}", "head query key") for name, code in steps.items()]
    if not _all_see_something(setting):  # where softmax gives 0/0
        lines.append(("weights = torch.where(visible.any(dim=-1, keepdim=True), weights, 0.0)", "head query key"))
    return [*lines, ("context = weights @ v", "head query head_dim")]


def _joined(setting: Setting) -> str:
    return f"context.transpose(0, 1).reshape({len(setting.queries)}, {setting.config.num_heads * setting.config.width})"


def _output(setting: Setting, joined: str) -> tuple[str, str]:
    if setting.config.output_projection:
        return f"output = to_output({joined})", "query embed_dim"
    return f"output = {joined}", "query (head head_dim)"


# Writing


def _bias(config: AttentionConfig) -> str:
    return "" if config.bias else ", bias=False"


def _factor(config: AttentionConfig) -> str:
    """Such as 16**-0.5 where it comes from a width of the layer."""
    roots = {width**-0.5: f"{width}**-0.5" for width in (config.embed_dim, config.width)}
    return roots.get(config.factor, repr(config.factor))


def _numbers(whole: Tensor) -> str:
    return repr(whole.tolist()).replace(".0", ".")


def _listed(name: str, tokens: Iterable[str]) -> str:
    """The tokens as Python writes them, out of which no quote, line break or invisible character can break."""
    one_line = f"{name} = {list(tokens)!r}"
    if len(one_line) <= 100:
        return one_line
    rows = pformat(list(tokens), width=96, compact=True)[1:-1].replace("\n ", "\n")
    return f"{name} = [\n{indent(rows, '    ')},\n]"


def _commented(setting: Setting, lines: Lines) -> str:
    """Code with its shapes as comments, in one column."""
    column = max((len(code) for code, axes in lines if axes and len(code) < _COLUMN), default=0)
    return "\n".join(f"{code:{column}}  # {_shape(setting, axes)}" if axes else code for code, axes in lines)


def _shape(setting: Setting, axes: str) -> str:
    """Axes and sizes: "head query key" is "head query key = 4 × 5 × 7"."""
    config = setting.config
    query, key, value = config.input_widths
    sizes = {"head": config.num_heads, "kv_head": config.kv_heads, "head_dim": config.width}
    sizes |= {"query": len(setting.queries), "key": len(setting.key_tokens)}
    sizes |= {"embed_dim": query, "kdim": key, "vdim": value}
    if setting.copies == 1:
        axes = axes.replace("kv_head", "head")
    if not _separate(config):
        axes = axes.replace("kdim", "embed_dim").replace("vdim", "embed_dim")
    groups = [group.strip("()").split() for group in re.findall(r"\(.*?\)|\w+", axes)]
    return f"{axes} = {' × '.join(str(prod(sizes[word] for word in group)) for group in groups)}"
