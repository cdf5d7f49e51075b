"""How much of each input piece reaches each piece of a layer, were attention all there is."""

import torch
from torch import Tensor


def rollout(weights: Tensor) -> Tensor:
    """Attention rollout (Abnar and Zuidema 2020, section 3): `layer head query key` -> `layer query key`.

    Layer by layer A = ½ W + ½ I, where W is the mean of the heads and I what goes around them unchanged, and
    rollout(l) = A(l) · rollout(l − 1), their equation (1). Entry l holds the layers up to l; every row adds up to 1
    where those of the weights do.
    """
    mean = weights.mean(dim=1)                                      # layer query key
    around = torch.eye(mean.shape[-1], dtype=mean.dtype)
    rolled, so_far = [], around
    for layer in (mean + around) / 2:
        so_far = layer @ so_far
        rolled.append(so_far)
    return torch.stack(rolled)
