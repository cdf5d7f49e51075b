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
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == round(value) and abs(value) < 1e6:
        text = f"{value:.0f}"
    elif abs(value) >= 1e6:
        text = f"{value:.{decimals}e}"
    else:
        text = f"{value:.{decimals}f}"
        if float(text) == 0:
            return "≈0"
    return text.replace("-", "−") if float(text) else "0"
