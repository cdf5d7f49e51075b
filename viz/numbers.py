"""How numbers are written, so that the same number looks the same everywhere."""

import math


def short(value: float) -> str:
    """For a cell: two decimals; a whole number without any; `≈0` where 0.00 would lie; −∞ and NaN by name."""
    return _written(value, "%.2f", ".00")


def exact(value: float) -> str:
    """For a closer look: four decimals, by the same rules."""
    return _written(value, "%.4f", ".0000")


def percent(share: float) -> str:
    """A weight as a share: whole percents, `<1 %` where 0 % would lie and `>99 %` where 100 % would."""
    if 0 < share <= 0.005:  # Python rounds a half to even, here to 0
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")


def _written(value: float, form: str, nothing: str) -> str:
    """A number in a form; `nothing` is how its decimals end where they say nothing."""
    if -1e6 < value < 1e6:  # first, since nearly every number is, and hundreds stand on a page
        text = form % value
        if text.endswith(nothing):
            if value == int(value):
                text = f"{value:.0f}" if value else "0"
            elif not text.strip("-0."):
                return "≈0"
        return text.replace("-", "−")
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{len(nothing) - 1}e}".replace("-", "−")
