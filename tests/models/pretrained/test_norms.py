"""‖α f(x)‖ in closed form, and against the sum it takes apart."""

import torch
from torch.testing import assert_close

from models.multi_head import AttentionConfig, MultiHeadAttention
from models.pretrained.norms import head_norms, norms

BATCH, HEADS, HEAD_DIM, TOKENS = 3, 2, 5, 7
EMBED = HEADS * HEAD_DIM


def attention() -> MultiHeadAttention:
    module = MultiHeadAttention(AttentionConfig(embed_dim=EMBED, num_heads=HEADS, bias=True)).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.requires_grad_(False)


def test_it_is_the_formula_with_the_bias_of_w_v_and_without_that_of_w_o():
    module, x = attention(), torch.randn(BATCH, TOKENS, EMBED, dtype=torch.float64)
    trace = module.trace(x)
    measured = head_norms(module, trace)
    assert measured.shape == (BATCH, HEADS, TOKENS, TOKENS)
    total = module.to_output.bias.expand(BATCH, TOKENS, EMBED).clone()
    for head in range(HEADS):
        own = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
        f = (x @ module.to_v.weight[own].T + module.to_v.bias[own]) @ module.to_output.weight[:, own].T
        parts = trace.weights[:, head, :, :, None] * f[:, None]     # batch query key embed
        assert_close(measured[:, head], parts.norm(dim=-1))
        total += parts.sum(dim=2)
    assert_close(total, trace.output)  # the parts measured are those the output is the sum of


def test_an_identity_measures_weight_times_length():
    module = MultiHeadAttention(AttentionConfig(embed_dim=2, bias=True)).requires_grad_(False)
    for linear in (module.to_q, module.to_k, module.to_v, module.to_output):
        linear.weight.copy_(torch.eye(2))
        linear.bias.zero_()
    module.to_q.weight.zero_()  # every score 0, every weight ½
    trace = module.trace(torch.tensor([[[3.0, 4.0], [0.0, 0.0]]]))
    assert_close(head_norms(module, trace), torch.tensor([[[[2.5, 0.0], [2.5, 0.0]]]]))


def test_a_model_gives_those_of_every_layer(opened):
    model = opened("gpt2")
    run = model.run(model.read("a cat"))
    measured = norms(model, run)
    assert measured.shape == run.weights.shape
    for layer, (block, trace) in enumerate(zip(model.model.blocks, run.traces, strict=True)):
        with torch.inference_mode():
            assert torch.equal(measured[layer], head_norms(block.attention, trace.attention)[0])


def test_minilm_s_weight_on_its_last_piece_is_more_than_what_comes_of_it(minilm):
    """Kobayashi et al. 2020, section 4: BERT gives special pieces much weight and little else."""
    run = minilm.run(minilm.read("The cat sat on the mat."))
    share = norms(minilm, run)
    share = share / share.sum(dim=-1, keepdim=True)
    special = [0, -1]
    assert share[2:, ..., special].sum(dim=-1).mean() < run.weights[2:, ..., special].sum(dim=-1).mean() - 0.1
