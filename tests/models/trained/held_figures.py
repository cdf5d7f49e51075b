"""What every trained task must reach, shipped or freshly trained: (at least, at most) for each measured figure."""

AT_LEAST, AT_MOST = float("-inf"), float("inf")

BOUNDS = {
    "reverse": {"accuracy": (1.0, AT_MOST), "mass": (0.99, AT_MOST)},
    "four_heads": dict.fromkeys(("accuracy", "previous", "next", "first", "digit"), (0.85, AT_MOST)),
    "coreference": {
        "accuracy": (0.99, AT_MOST),
        "it_to_adjective": (0.94, AT_MOST),
        "it_to_noun": (0.96, AT_MOST),
        "flips": (0.98, AT_MOST),
    },
    "induction": {"accuracy": (0.99, AT_MOST), "previous": (0.98, AT_MOST), "induction": (0.95, AT_MOST)},
    "translation": {
        "exact": (0.98, AT_MOST),
        "mass": (0.97, AT_MOST),
        "crossing": (0.94, AT_MOST),
        "alignment_error": (AT_LEAST, 0.03),
        "hiding": (0.95, AT_MOST),
        "hiding_another": (AT_LEAST, 0.01),
        "famous": (1.0, AT_MOST),
    },
}


def missed(task: str, figures: dict[str, float]) -> dict[str, float]:
    """The figures out of bounds."""
    return {name: figures[name] for name, (least, most) in BOUNDS[task].items() if not least <= figures[name] <= most}
