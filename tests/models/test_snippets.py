"""Each script, run with nothing but its own text, must give the numbers of the module."""

import ast
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from models import masks, twin, worked_example
from models.embedding import embed
from models.multi_head import AttentionConfig, MultiHeadAttention
from models.positions import sinusoidal
from models.recipes import RECIPES
from models.snippets import PATTERNS, Setting, snippets
from models.tokens import PAD, characters, words
from models.trace import AttentionTrace

TEXT = tuple(words("The animal didn't cross the street [PAD] [PAD]"))  # 8, with a word twice but for its capital
CONTEXT = tuple(words("la zone économique européenne [PAD]"))  # 5
DIALECTS = ("einops", "torch", "library")


def setting(queries=TEXT, keys=None, config=None, **changes) -> Setting:
    return Setting(config=config or AttentionConfig(24, 3), queries=queries, keys=keys, **changes)


def cross(**config) -> Setting:
    return setting(keys=CONTEXT, config=AttentionConfig(**{"embed_dim": 24, "num_heads": 3} | config))


SCENES = {
    "worked example": setting(worked_example.WORDS, config=worked_example.CONFIG, worked_example=True),
    "worked example, other scale": setting(
        worked_example.WORDS, config=replace(worked_example.CONFIG, scale=0.5), worked_example=True
    ),
    "worked example, masked, unscaled, with positions": setting(
        ("Machines", "Thinking", "Machines"),
        config=replace(worked_example.CONFIG, scale=1.0),
        worked_example=True,
        positions=True,
        pattern="causal",
    ),
    "single head": setting(config=AttentionConfig(24)),
    "one token": setting(("The",)),
    "characters": setting(tuple(characters("ein Wort 👩‍👩‍👧 é"))),
    "Chinese": setting(tuple(words("我們喜歡貓。")), tuple(words("我们喜欢猫。"))),
    "positions": setting(positions=True, seed=3),
    "another seed": setting(seed=2**63 - 1),
    "cross": cross(),
    "cross, kdim and vdim": cross(kdim=7, vdim=11),
    "cross, kdim alone": cross(kdim=7),
    "cross, kdim and vdim alike": cross(kdim=7, vdim=7),
    "cross, with bias and positions": replace(cross(kdim=7, vdim=11, bias=True), positions=True),
    "cross, one width for key and value, with positions": replace(cross(), positions=True),
    "bias": setting(config=AttentionConfig(24, 3, bias=True)),
    "heads of their own width": setting(config=AttentionConfig(24, 3, head_dim=5)),
    "no output projection": setting(config=AttentionConfig(24, 3, output_projection=False)),
    "no projections": setting(config=AttentionConfig(24, projections=False, output_projection=False)),
    "no projections but W_O": setting(config=AttentionConfig(24, projections=False)),
    "ReLU": setting(config=AttentionConfig(24, 3, projection_activation="relu")),
    "scaled by the whole width": setting(config=AttentionConfig(24, 3, scale=24**-0.5)),
    "unscaled": setting(config=AttentionConfig(24, 3, scale=1.0)),
    "some other scale": setting(config=AttentionConfig(24, 3, scale=-0.3)),
    "heads one wide": setting(config=AttentionConfig(3, 3)),
    "grouped queries": setting(config=AttentionConfig(24, 6, num_kv_heads=2, bias=True)),
    "multi-query, cross, masked": replace(
        cross(num_kv_heads=1, kdim=7, vdim=11, scale=1.0), pattern="prefix", length=2, padding=True
    ),
    "many tokens": setting(tuple(f"wort{i}" for i in range(130)), config=AttentionConfig(8, 2)),
}
SCENES |= {
    f"{name}, masked: {pattern} {width}{' and padding' * padding}": replace(
        scene, pattern=pattern, width=width, length=width, padding=padding
    )
    for name, scene in {"self": setting(), "cross": cross(kdim=7), "cross, unscaled": cross(scale=1.0)}.items()
    for pattern, width in [(None, 0), ("causal", 0), ("window", 0), ("window", 2), ("prefix", 0), ("prefix", 3)]
    for padding in (False, True)
    if pattern or padding
}
SCENES |= {
    f"queries that see nothing{name}": replace(scene, queries=(PAD, *TEXT), pattern="causal", padding=True)
    for name, scene in {"": setting(), ", unscaled": setting(config=AttentionConfig(24, 3, scale=1.0))}.items()
}
SCENES |= {
    f"recipe {name}{' across' * across}": setting(
        keys=CONTEXT if across else None, config=recipe.config(24, 3), pattern="causal"
    )
    for name, recipe in RECIPES.items()
    for across in (False, True)
}


@cache
def trace(scene: Setting) -> AttentionTrace:
    """As the app computes it: batch of one, layer drawn under its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(scene.seed)
        layer = MultiHeadAttention(scene.config)
    if scene.worked_example:
        layer.load_state_dict(worked_example.layer().state_dict())

    def vectors(tokens: tuple[str, ...], width: int) -> torch.Tensor:
        drawn = worked_example.embed(tokens) if scene.worked_example else embed(tokens, width, scene.seed)
        return (drawn + sinusoidal(*drawn.shape) if scene.positions else drawn)[None]

    keys = scene.keys or scene.queries
    inputs = [vectors(scene.queries, scene.config.embed_dim)]
    if scene.keys:
        inputs += [vectors(keys, width) for width in scene.config.input_widths[1:]]
    size, visible = (len(scene.queries), len(keys)), None
    if scene.pattern or scene.padding:
        visible = {
            None: torch.ones(size, dtype=torch.bool),
            "causal": masks.causal(*size),
            "window": masks.window(*size, scene.width),
            "prefix": masks.prefix(*size, scene.length),
        }[scene.pattern]
    if scene.padding:
        visible = visible & masks.padding(torch.tensor([key != PAD for key in keys]))[0]
    with torch.no_grad():
        return layer.trace(*inputs, visible=visible)


@cache
def run(code: str) -> dict:
    """The names a script leaves; printing, which is slow, has a test of its own."""
    names = {"__name__": "snippet", "print": lambda tensor: None}
    with torch.random.fork_rng(devices=[]):
        exec(compile(code, "snippet", "exec"), names)
    return names


# The numbers


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", SCENES)
def test_a_script_gives_the_numbers_of_the_module(name, dialect):
    made, wanted = run(snippets(SCENES[name])[dialect]), trace(SCENES[name])
    assert_close(made["weights"].detach(), wanted.weights[0], rtol=0, atol=1e-6)
    assert_close(made["output"].detach(), wanted.output[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("dialect", ["einops", "torch"])
@pytest.mark.parametrize("name", ["worked example", "single head", "grouped queries", "multi-query, cross, masked"])
def test_our_own_dialects_give_them_to_the_last_bit(name, dialect):
    made, wanted = run(snippets(SCENES[name])[dialect]), trace(SCENES[name])
    assert torch.equal(made["weights"], wanted.weights[0])
    assert torch.equal(made["output"], wanted.output[0])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fresh_python_prints_them(dialect, tmp_path):
    scene = replace(SCENES["multi-query, cross, masked"], queries=("it's", '"', "\u202e", "\ud800", "שלום"))
    script = tmp_path / "scene.py"
    script.write_text(snippets(scene)[dialect], encoding="utf-8")
    # -I: neither this folder nor the environment lends it anything
    printed = subprocess.run([sys.executable, "-I", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    wanted = trace(scene)
    assert printed.stdout == f"{wanted.weights[0]}\n{wanted.output[0]}\n"


# What is in a script


@pytest.mark.parametrize("name", SCENES)
def test_a_script_imports_torch_and_little_else(name):
    for dialect, code in snippets(SCENES[name]).items():
        imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
        roots = {getattr(node, "module", None) or node.names[0].name for node in imports}
        assert roots <= {"hashlib", "torch", "torch.nn.functional"} | ({"einops"} if dialect == "einops" else set())


@pytest.mark.parametrize("name", SCENES)
def test_a_script_makes_nothing_it_does_not_use(name):
    for code in snippets(SCENES[name]).values():
        tree = ast.parse(code)
        nodes = list(ast.walk(tree))
        used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        made = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        made |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                made |= {(alias.asname or alias.name) for alias in node.names}
        assert made <= used


@pytest.mark.parametrize("name", SCENES)
def test_every_shape_in_a_comment_is_the_tensor_s(name):
    for code in snippets(SCENES[name]).values():
        shapes, made, checked = noted(code), run(code), 0
        for variable, shape in shapes.items():
            tensor = made[variable]
            tensor = tensor if isinstance(tensor, torch.Tensor) else tensor.weight
            assert list(tensor.shape) == shape, variable
            checked += 1
        assert checked > 3 or "nn.MultiheadAttention(" in code


def noted(code: str) -> dict[str, list[int]]:
    """The last size a comment gives for each variable."""
    lines = [line.split("  # ") for line in code.splitlines() if " = " in line and "  # " in line and "×" in line]
    return {
        name: [int(size) for size in comment.split(" = ")[1].split(" × ")]
        for statement, comment in lines
        for name in statement.split("[")[0].split("(")[0].split(" = ")[: statement.count(" = ")]
    }


def test_a_scene_without_a_choice_has_no_line_for_it():
    plain = "".join(snippets(setting()).values())
    for absent in ("visible", "keep", "PAD] in", "sinusoidal", "relu", "repeat", "enable_gqa", "kdim", "masked"):
        assert absent not in plain.replace("'[PAD]'", "")
    unscaled = snippets(setting(config=AttentionConfig(24, 3, scale=1.0)))
    assert "scaled =" not in unscaled["einops"] and "scale=1.0" in unscaled["library"]
    untouched = snippets(SCENES["no projections"])["einops"]
    assert "nn" not in untouched.split("\n\n")[1].split() and "manual_seed(seed)" not in untouched


@pytest.mark.parametrize(
    "config, changes, how",
    [
        ({"output_projection": False}, {}, None),
        ({"scale": 1.0}, {}, "how = dict(scale=1.0)"),
        ({"num_kv_heads": 1}, {}, "how = dict(enable_gqa=True)"),
        (
            {"num_kv_heads": 1, "scale": 24**-0.5},
            {"pattern": "causal"},
            "how = dict(attn_mask=visible, scale=24**-0.5, enable_gqa=True)  # in attn_mask, True keeps",
        ),
    ],
)
def test_torch_s_function_is_told_only_what_it_would_not_do_by_itself(config, changes, how):
    code = snippets(setting(config=AttentionConfig(24, 3, **config), **changes))["library"]
    assert [line for line in code.splitlines() if "how =" in line] == ([how] if how else [])
    assert code.count("**how") == (2 if how else 0)


@pytest.mark.parametrize("name", SCENES)
def test_the_library_is_torch_s_module_wherever_that_can_express_the_scene(name):
    code = snippets(SCENES[name])["library"]
    some_see_nothing = (trace(SCENES[name]).weights == 0).all(dim=-1).any()
    function = bool(twin.obstacles(SCENES[name].config) or some_see_nothing)
    assert ("F.scaled_dot_product_attention(" in code) == function
    assert ("= nn.MultiheadAttention(" in code) == (not function)


def test_a_function_says_why_it_is_not_the_module():
    code = snippets(cross(scale=1.0, num_kv_heads=1))["library"]
    assert (
        "# Not nn.MultiheadAttention:\n"
        "#     each of its heads has keys and values of its own\n"
        "#     it always scales by 1/√head_dim\n"
    ) in code
    blind = replace(setting((PAD, "a")), pattern="causal", padding=True)
    assert "#     it gives NaN for a query that sees nothing\n" in snippets(blind)["library"]


@pytest.mark.parametrize("name", SCENES)
def test_lines_are_short_and_end_clean(name):
    for code in snippets(SCENES[name]).values():
        assert code.endswith("\n") and not code.endswith("\n\n") and "\n\n\n\n" not in code
        assert all(len(line) <= 132 and line == line.rstrip() for line in code.splitlines())


# Hostile tokens

HOSTILE = [
    "'",
    '"',
    "'\"",
    '"""',
    "'''",
    "\\",
    "\\'",
    "\n",
    "\r\n",
    "\u2028",
    "\x00",
    "#",
    "{seed}",
    "%s",
    "\ud800",
    "\udfff",
    "\u202e",  # from here on it would read right to left
    "\u2066",
    "שלום",
    "'] + [__import__('os').abort()] + ['",
    "\n__import__('os').abort()\n#",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    PAD,
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("repeats", [1, 8])  # on one line, and on several
def test_hostile_tokens_are_only_tokens(dialect, repeats):
    scene = setting(tuple(HOSTILE) * repeats, tuple(HOSTILE[::-1]), pattern="causal")
    made, wanted = run(snippets(scene)[dialect]), trace(scene)
    assert (tuple(made["query_tokens"]), tuple(made["key_tokens"])) == (scene.queries, scene.keys)
    assert_close(made["output"].detach(), wanted.output[0], rtol=0, atol=1e-6)


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(), max_size=150), min_size=1, max_size=40))
def test_any_tokens_survive_as_they_are(tokens):
    code = snippets(setting(tuple(tokens)))["torch"]
    (found,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "tokens"
    )
    assert found == tokens
    assert code.isascii() or all(c.isprintable() or c == "\n" for c in code)
    assert len(code.splitlines()) == len(code.split("\n")) - 1  # no other character ends a line


# Errors


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"queries": ()}, "queries and keys must have one token or more; got none. Self-attention is keys=None."),
        ({"keys": ()}, "queries and keys must have one token or more; got none. Self-attention is keys=None."),
        (
            {"config": AttentionConfig(24, 3, vdim=7)},
            "in self-attention kdim and vdim are embed_dim; got inputs of (24, 24, 7). "
            "Give keys, or leave kdim and vdim out.",
        ),
        ({"pattern": "none"}, "pattern must be None or one of causal, window, prefix; got 'none'."),
        ({"worked_example": True}, "the worked example has one config, in which only scale may differ; got another."),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        setting(**changes)
    assert str(error.value) == message


def test_a_setting_is_equal_by_value_and_patterns_are_those_of_masks():
    assert {setting(): "cached"}[setting()] == "cached"
    assert all(callable(getattr(masks, pattern)) for pattern in PATTERNS)
