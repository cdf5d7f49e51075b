"""What can be wrong with a model's files and with a text, each as a sentence: wanted, came, change."""


class Unusable(ValueError):
    """Files no model can be made of, or that could not be had."""


class Unreadable(ValueError):
    """A text the model cannot take."""
