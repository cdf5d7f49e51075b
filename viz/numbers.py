"""How numbers are written, so that the same number looks the same everywhere."""

import math


def short(value: float) -> str:
    """For a cell: two decimals; a whole number without any; `≈0` where 0.00 would lie; −∞ and NaN by name."""
    return _written(value, 2)


def exact(value: float) -> str:
    """For a closer look: four decimals, by the same rules."""
    return _written(value, 4)


def percent(share: float) -> str:
    """A weight as a share: whole percents, `<1 %` where 0 % would lie and `>99 %` where 100 % would."""
    if 0 < share <= 0.005:  # Python rounds a half to even, here to 0
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")


def _written(value: float, decimals: int) -> str:
    value = float(value)
    if -1e6 < value < 1e6:  # first, since nearly every number is
        if value.is_integer():
            return f"{value:.0f}".replace("-", "−") if value else "0"
        text = f"{value:.{decimals}f}"
        return text.replace("-", "−") if text.strip("-0.") else "≈0"
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{decimals}e}".replace("-", "−")
