"""Attention and everything around it, in torch and einops. Knows nothing of pages or pictures."""
