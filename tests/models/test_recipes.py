"""Each recipe against its source: torch's own module and function, the source's own einsum, or slow loops."""

import ast
import math
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import einsum, nn
from torch.testing import assert_close

from models.fused import split_fused
from models.masks import causal, padding
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.recipes import RECIPES, Recipe
from models.trace import AttentionTrace, Step

# Primes, all different, and none the three of q, k and v. WIDTH is what the recipes that must divide can do.
BATCH, HEADS, QUERIES, KEYS, HEAD_DIM, EMBED, KDIM, VDIM = 2, 5, 7, 11, 13, 17, 19, 23
WIDTH = HEADS * HEAD_DIM

# Written out, so that adding, renaming or moving a recipe is a decision: links carry these names.
NAMES = ["plain", "single_head", "multi_head", "cross", "unify_heads", "torch", "tensorflow"]

masked_or_not = pytest.mark.parametrize("masked", [False, True])


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def linear(width: int, out: int, bias: bool) -> nn.Linear:
    module = nn.Linear(width, out, bias=bias).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def recipe_layer(name: str, *sizes: int, **more: int) -> MultiHeadAttention:
    """The recipe as the app runs it, with random weights and biases."""
    module = MultiHeadAttention(RECIPES[name].config(*sizes, **more)).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def some_visible(*shape: int) -> torch.Tensor:
    """Random, but every query sees at least its first key, since the sources answer NaN where one sees nothing."""
    visible = torch.rand(*shape) < 0.5
    visible[..., 0] = True
    return visible


def assert_same(trace: AttentionTrace, wanted: dict[Step, torch.Tensor]) -> None:
    """Every step that the oracle has."""
    for step, value in wanted.items():
        assert_close(trace[step], value, msg=lambda text, step=step: f"{step}: {text}")


def load(module: MultiHeadAttention, weights: tuple[torch.Tensor, ...], output: nn.Linear | None = None) -> None:
    state = dict(zip(("to_q.weight", "to_k.weight", "to_v.weight"), weights, strict=True))
    module.load_state_dict(state | ({} if output is None else {"to_output.weight": output.weight}))


# The formulas, by loops over single numbers


@torch.no_grad()
def heads_of(x: torch.Tensor, projection: nn.Linear, heads: int, relu: bool = False) -> torch.Tensor:
    """W x + b row by row, the first head_dim rows for the first head and so on: `batch head token head_dim`."""
    rows = projection.out_features // heads
    result = torch.full((len(x), heads, x.shape[1], rows), math.nan, dtype=x.dtype)
    for b in range(len(x)):
        for h in range(heads):
            for t in range(x.shape[1]):
                for d in range(rows):
                    row = h * rows + d
                    number = projection.weight[row] @ x[b, t]
                    number = number if projection.bias is None else number + projection.bias[row]
                    result[b, h, t, d] = max(number, torch.zeros(())) if relu else number
    return result


@torch.no_grad()
def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, divisor: float, visible: torch.Tensor | None) -> dict:
    """softmax(q·k / divisor) v, from q to the context. `visible` is `query key`, or has batch and head before it."""
    batch, heads, queries, keys = *q.shape[:3], k.shape[2]
    seen = torch.ones(()).bool() if visible is None else visible
    seen = seen.expand(batch, heads, queries, keys)
    scores, scaled, hidden, weights = torch.full((4, batch, heads, queries, keys), math.nan, dtype=q.dtype)
    context = torch.zeros(batch, heads, queries, v.shape[-1], dtype=q.dtype)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                for j in range(keys):
                    scores[b, h, i, j] = q[b, h, i] @ k[b, h, j]
                    scaled[b, h, i, j] = scores[b, h, i, j] / divisor
                    hidden[b, h, i, j] = scaled[b, h, i, j] if seen[b, h, i, j] else -math.inf
                total = sum(math.exp(number) for number in hidden[b, h, i])
                for j in range(keys):
                    weights[b, h, i, j] = math.exp(hidden[b, h, i, j]) / total
                    context[b, h, i] += weights[b, h, i, j] * v[b, h, j]
    return {
        Step.Q: q, Step.K: k, Step.V: v, Step.SCORES: scores, Step.SCALED: scaled, Step.MASKED: hidden,
        Step.WEIGHTS: weights, Step.CONTEXT: context,
    }  # fmt: skip


def side_by_side(context: torch.Tensor) -> torch.Tensor:
    """The heads' vectors one behind the other, token by token: `batch query (head head_dim)`."""
    return torch.stack([
        torch.stack([torch.cat(list(example[:, i])) for i in range(context.shape[2])]) for example in context
    ])  # fmt: skip


# The list


def test_the_recipes_are_these_in_this_order():
    assert list(RECIPES) == NAMES


def test_the_list_and_a_recipe_cannot_be_changed():
    with pytest.raises(TypeError):
        RECIPES["plain"] = None
    with pytest.raises(AttributeError):
        RECIPES["plain"].title = "Another"


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_has_words_of_its_own(name):
    recipe = RECIPES[name]
    assert recipe.title and recipe.source and recipe.remark.endswith(".")
    for part in ("title", "remark"):
        assert [getattr(other, part) for other in RECIPES.values()].count(getattr(recipe, part)) == 1


def test_which_have_one_head_and_which_two_sequences():
    assert [name for name in NAMES if RECIPES[name].one_head] == ["plain", "single_head"]
    assert [name for name in NAMES if RECIPES[name].two_sequences] == ["cross"]
    for name in NAMES:
        assert (RECIPES[name].config(WIDTH, HEADS).num_heads == 1) is RECIPES[name].one_head


@pytest.mark.parametrize("name, heads", [("multi_head", 8), ("cross", 8), ("unify_heads", 4)])
def test_heads_unless_given_are_the_source_s(name, heads):
    assert RECIPES[name].config(64) == RECIPES[name].config(64, heads)


# S4, step 0


@masked_or_not
def test_plain_is_softmax_of_x_x_transposed_times_x(masked):
    x, visible = normal(BATCH, QUERIES, EMBED), causal(QUERIES, QUERIES) if masked else None
    module = recipe_layer("plain", EMBED)
    wanted = attend(x[:, None], x[:, None], x[:, None], divisor=1, visible=visible)
    assert_same(module.trace(x, visible=visible), wanted | {Step.OUTPUT: wanted[Step.CONTEXT][:, 0]})
    assert not list(module.parameters())
    if not masked:
        assert_close(module(x), torch.bmm(F.softmax(torch.bmm(x, x.transpose(1, 2)), dim=2), x))


# S1


@masked_or_not
def test_single_head_is_its_source_s_einsum(masked):
    to_qvk = linear(EMBED, 3 * EMBED, bias=False)
    x, mask = normal(BATCH, QUERIES, EMBED), ~some_visible(QUERIES, QUERIES)  # the source hides where True

    q, k, v = rearrange(to_qvk(x), "b t (d k) -> k b t d", k=3)
    scores = einsum("b i d, b j d -> b i j", q, k)
    scaled = scores * EMBED**-0.5
    hidden = scaled.masked_fill(mask, -math.inf) if masked else scaled
    weights = torch.softmax(hidden, dim=-1)
    output = einsum("b i j, b j d -> b i d", weights, v)

    module = recipe_layer("single_head", EMBED)
    load(module, split_fused(to_qvk.weight, "(d k)"))
    trace = module.trace(x, visible=~mask if masked else None)
    theirs = dict(zip(Step, (q, k, v, scores, scaled, hidden, weights, output), strict=False))
    assert_same(trace, {step: value[:, None] for step, value in theirs.items()} | {Step.OUTPUT: output})
    assert_same(trace, attend(q[:, None], k[:, None], v[:, None], math.sqrt(EMBED), ~mask if masked else None))
    assert_close(trace.output, F.scaled_dot_product_attention(q, k, v, attn_mask=~mask if masked else None))


# S2


@masked_or_not
@pytest.mark.parametrize("embed", [EMBED, WIDTH])
def test_multi_head_is_its_source_s_einsum(embed, masked):
    to_qvk, to_output = linear(embed, 3 * WIDTH, bias=False), linear(WIDTH, embed, bias=False)
    x, mask = normal(BATCH, QUERIES, embed), ~some_visible(QUERIES, QUERIES)  # the source hides where True

    q, k, v = rearrange(to_qvk(x), "b t (d k h) -> k b h t d", k=3, h=HEADS)
    scores = einsum("b h i d, b h j d -> b h i j", q, k)
    scaled = scores * HEAD_DIM**-0.5
    hidden = scaled.masked_fill(mask, -math.inf) if masked else scaled
    weights = torch.softmax(hidden, dim=-1)
    context = einsum("b h i j, b h j d -> b h i d", weights, v)
    output = to_output(rearrange(context, "b h t d -> b t (h d)"))

    module = recipe_layer("multi_head", embed, HEADS, **({} if embed == WIDTH else {"head_dim": HEAD_DIM}))
    load(module, split_fused(to_qvk.weight, "(d k h)", h=HEADS), to_output)
    trace = module.trace(x, visible=~mask if masked else None)
    theirs = (q, k, v, scores, scaled, hidden, weights, context, output)
    assert_same(trace, dict(zip(Step, theirs, strict=True)))
    assert_same(trace, attend(q, k, v, math.sqrt(HEAD_DIM), ~mask if masked else None))


# S3


@masked_or_not
@pytest.mark.parametrize("keys", [QUERIES, KEYS])  # its source ran only for the first
def test_cross_is_its_formula(keys, masked):
    x, context = normal(BATCH, QUERIES, WIDTH), normal(BATCH, keys, WIDTH)
    keep = F.pad(some_visible(BATCH, keys - 1), (1, 0), value=True)  # the source keeps where True, and the first always
    visible = padding(keep) if masked else None
    module = recipe_layer("cross", WIDTH, HEADS)
    q = heads_of(x, module.to_q, HEADS)
    k, v = (heads_of(context, projection, HEADS) for projection in (module.to_k, module.to_v))
    wanted = attend(q, k, v, math.sqrt(WIDTH), visible)
    assert_same(module.trace(x, context, visible=visible), wanted | {Step.OUTPUT: side_by_side(wanted[Step.CONTEXT])})
    assert {name for name, _ in module.named_parameters()} == {
        f"to_{letter}.{part}" for letter in "qkv" for part in ("weight", "bias")
    }


def test_the_cross_demo_of_its_source():
    module = MultiHeadAttention(RECIPES["cross"].config(512))
    assert module(torch.randn(1, 10, 512), torch.randn(1, 10, 512)).shape == (1, 10, 512)


# S4, the full module


@masked_or_not
def test_unify_heads_is_its_formula(masked):
    x, visible = normal(BATCH, QUERIES, WIDTH), causal(QUERIES, QUERIES) if masked else None
    module = recipe_layer("unify_heads", WIDTH, HEADS)
    q, k, v = (heads_of(x, projection, HEADS) for projection in (module.to_q, module.to_k, module.to_v))
    wanted = attend(q, k, v, math.sqrt(WIDTH), visible)  # √e as the code has it; the text has √(e / h)
    unified = heads_of(side_by_side(wanted[Step.CONTEXT]), module.to_output, 1)[:, 0]
    assert_same(module.trace(x, visible=visible), wanted | {Step.OUTPUT: unified})
    assert {name for name, _ in module.named_parameters()} == {
        f"to_{part}.weight" for part in ("q", "k", "v", "output")
    }


# S5


def torch_s(kdim: int | None, vdim: int | None) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """The recipe with the weights of torch's module, which keeps them fused where all widths agree."""
    theirs = nn.MultiheadAttention(WIDTH, HEADS, kdim=kdim, vdim=vdim, batch_first=True).double()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    weights = (
        (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
        if theirs.in_proj_weight is None
        else split_fused(theirs.in_proj_weight, "(k h d)", h=HEADS)
    )
    ours = recipe_layer("torch", WIDTH, HEADS, kdim=kdim, vdim=vdim)
    biases = split_fused(theirs.in_proj_bias, "(k h d)", h=HEADS)
    ours.load_state_dict(
        {f"to_{letter}.weight": weight for letter, weight in zip("qkv", weights, strict=True)}
        | {f"to_{letter}.bias": bias for letter, bias in zip("qkv", biases, strict=True)}
        | {f"to_output.{part}": value for part, value in theirs.out_proj.state_dict().items()}
    )
    return ours, theirs


@pytest.mark.parametrize("masking", ["none", "attn_mask", "attn_mask of each head", "key_padding_mask", "both"])
@pytest.mark.parametrize("kdim, vdim", [(None, None), (KDIM, VDIM), (KDIM, None), (None, VDIM)])
def test_torch_is_torch_s_module(kdim, vdim, masking):
    ours, theirs = torch_s(kdim, vdim)
    query = normal(BATCH, QUERIES, WIDTH)
    key, value = (normal(BATCH, KEYS, width or WIDTH) for width in (kdim, vdim))
    visible, hidden = None, {}  # torch's module wants the opposite boolean: True where it hides
    if masking in ("attn_mask", "both"):
        visible = some_visible(QUERIES, KEYS)
        hidden["attn_mask"] = ~visible
    if masking == "attn_mask of each head":
        visible = some_visible(BATCH, HEADS, QUERIES, KEYS)
        hidden["attn_mask"] = ~visible.reshape(BATCH * HEADS, QUERIES, KEYS)
    if masking in ("key_padding_mask", "both"):
        keep = some_visible(BATCH, KEYS)
        visible = padding(keep) if visible is None else padding(keep) & visible
        hidden["key_padding_mask"] = ~keep
    output, weights = theirs(query, key, value, need_weights=True, average_attn_weights=False, **hidden)
    trace = ours.trace(query, key, value, visible=visible)
    assert_same(trace, {Step.WEIGHTS: weights, Step.OUTPUT: output})  # all that torch shows
    q, k, v = (
        heads_of(x, projection, HEADS) for x, projection in ((query, ours.to_q), (key, ours.to_k), (value, ours.to_v))
    )
    assert_same(trace, attend(q, k, v, math.sqrt(HEAD_DIM), visible))  # what it does not show, from its formula


# S6


@masked_or_not
@pytest.mark.parametrize("embed", [WIDTH, EMBED])  # equal to heads × head_dim, and so no output projection, or not
def test_tensorflow_is_its_formula(embed, masked):
    query, key = normal(BATCH, QUERIES, embed), normal(BATCH, KEYS, KDIM)
    visible = some_visible(BATCH, 1, QUERIES, KEYS) if masked else None
    module = recipe_layer("tensorflow", embed, HEADS, head_dim=HEAD_DIM, kdim=KDIM, vdim=KDIM)
    q = heads_of(query, module.to_q, HEADS, relu=True)
    k, v = (heads_of(key, projection, HEADS, relu=True) for projection in (module.to_k, module.to_v))
    wanted = attend(q, k, v, math.sqrt(embed), visible)
    joined = side_by_side(wanted[Step.CONTEXT])
    output = joined if embed == WIDTH else heads_of(joined, module.to_output, 1)[:, 0]  # no ReLU on this one
    assert_same(module.trace(query, key, visible=visible), wanted | {Step.OUTPUT: output})
    if embed != WIDTH:
        assert output.min() < 0 and module.to_output.bias is not None
    assert (q == 0).any() and not (q < 0).any()


def test_tensorflow_has_an_output_projection_exactly_where_the_width_must_change():
    config = RECIPES["tensorflow"].config
    assert not config(WIDTH, HEADS).output_projection
    assert not config(WIDTH, HEADS, HEAD_DIM).output_projection
    assert config(WIDTH, HEADS, HEAD_DIM + 1).output_projection
    assert config(EMBED, HEADS, HEAD_DIM).output_projection


# Shared keys and values


@masked_or_not
@pytest.mark.parametrize("heads, kv_heads", [(6, 6), (6, 3), (6, 2), (6, 1), (5, 1)])
def test_grouped_queries_are_torch_s(heads, kv_heads, masked):
    module = MultiHeadAttention(AttentionConfig(EMBED, heads, HEAD_DIM, KDIM, VDIM, num_kv_heads=kv_heads, bias=True))
    query, key, value = (
        torch.randn(BATCH, tokens, width) for tokens, width in ((QUERIES, EMBED), (KEYS, KDIM), (KEYS, VDIM))
    )
    module, query, key, value = module.double(), query.double(), key.double(), value.double()
    visible = some_visible(BATCH, heads, QUERIES, KEYS) if masked else None
    q, k, v = (
        projection(x).view(BATCH, x.shape[1], count, HEAD_DIM).transpose(1, 2)
        for x, projection, count in (
            (query, module.to_q, heads), (key, module.to_k, kv_heads), (value, module.to_v, kv_heads),
        )
    )  # fmt: skip
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, enable_gqa=True)
    output = module.to_output(context.transpose(1, 2).reshape(BATCH, QUERIES, heads * HEAD_DIM))
    trace = module.trace(query, key, value, visible=visible)
    assert_same(trace, {Step.Q: q, Step.CONTEXT: context, Step.OUTPUT: output})
    for head in range(heads):
        served_by = head // (heads // kv_heads)  # neighbours share
        assert_close(trace.k[:, head], k[:, served_by])
        assert_close(trace.v[:, head], v[:, served_by])
    assert module.to_k.out_features == module.to_v.out_features == kv_heads * HEAD_DIM


# What the remarks say


@pytest.mark.parametrize("name", ["cross", "unify_heads"])
def test_dividing_by_the_whole_width_makes_weights_more_even(name):
    module, x = recipe_layer(name, WIDTH, HEADS), normal(BATCH, QUERIES, WIDTH)
    trace = module.trace(x)
    by_head = torch.softmax(trace.scores / math.sqrt(HEAD_DIM), dim=-1)
    assert_close(trace.scaled, trace.scores / math.sqrt(HEAD_DIM) / math.sqrt(HEADS))
    assert (entropy(trace.weights) > entropy(by_head)).all()
    one_head = RECIPES[name].config(WIDTH, 1)
    assert one_head.factor == pytest.approx(AttentionConfig(WIDTH, 1).factor)


def entropy(weights: torch.Tensor) -> torch.Tensor:
    return torch.special.entr(weights).sum(dim=-1)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_without_a_meaning_in_a_recipe_are_ignored(name):
    free = {
        "plain": {}, "single_head": {}, "unify_heads": {},
        "torch": {"kdim", "vdim"},
    }.get(name, {"head_dim", "kdim", "vdim"})  # fmt: skip
    config = RECIPES[name].config
    for size in ("head_dim", "kdim", "vdim"):
        assert (config(WIDTH, HEADS, **{size: 29}) == config(WIDTH, HEADS)) is (size not in free), size


# Errors


@pytest.mark.parametrize("embed", [0, -3])
@pytest.mark.parametrize("name", NAMES)
def test_a_width_below_one_meets_its_rule(name, embed):
    with pytest.raises(ValueError, match=f"^embed_dim must be 1 or more; got {embed}\\.$"):
        RECIPES[name].config(embed, 2)


@pytest.mark.parametrize("heads", [0, -2])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("plain", "single_head")])
def test_heads_below_one_meet_their_rule(name, heads):
    with pytest.raises(ValueError, match=f"^num_heads must be 1 or more; got {heads}\\.$"):
        RECIPES[name].config(WIDTH, heads)


@pytest.mark.parametrize("name", ["multi_head", "cross", "unify_heads", "torch", "tensorflow"])
def test_heads_that_do_not_divide_meet_their_rule(name):
    with pytest.raises(ValueError, match="^embed_dim must divide by num_heads"):
        RECIPES[name].config(EMBED, HEADS)


# One module, one forward pass

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for room in ("app.py", "models", "viz", "sections", "benchmarks", "tests")
    for path in [ROOT / room, *(ROOT / room).rglob("*.py")]
    if path.is_file()
)
FILES = [path for path in FILES if not path.startswith("tests/")]


@cache
def code(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def named(node: ast.expr) -> str:
    """`b` for `b` and for `a.b`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def calls(tree: ast.AST, name: str) -> int:
    return sum(isinstance(node, ast.Call) and named(node.func) == name for node in ast.walk(tree))


def subclasses(tree: ast.AST, name: str) -> list[str]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if any(named(base) == name for base in node.bases)]


def test_the_code_is_there_to_be_read():
    assert {"models/multi_head.py", "models/recipes.py", "models/block.py"} <= set(FILES)
    assert subclasses(code("models/multi_head.py"), "Module") == ["MultiHeadAttention"]


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("name", ["MultiHeadAttention", "AttentionConfig", "Recipe"])
def test_nothing_is_a_subclass_of_the_module_or_its_config(path, name):
    assert subclasses(code(path), name) == []


@pytest.mark.parametrize("step", ["similarity", "hide", "normalise", "mix"])
def test_the_steps_of_attention_are_taken_in_one_place(step):
    taken = {path: calls(code(path), step) for path in FILES if path.startswith("models/")}
    assert {path: count for path, count in taken.items() if count} == {"models/multi_head.py": 1}


def test_a_recipe_is_words_and_a_config_and_computes_nothing():
    tree = code("models/recipes.py")
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import) for alias in node.names
    }
    assert imported == {"Callable", "Mapping", "dataclass", "replace", "MappingProxyType", "AttentionConfig"}
    assert [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] == ["Recipe"]
    for recipe in RECIPES.values():
        assert type(recipe) is Recipe
        assert type(recipe.config(WIDTH, HEADS)) is AttentionConfig
