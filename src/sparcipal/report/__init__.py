from ..lazy import modules_of

__getattr__, __dir__ = modules_of(__name__, ("plots",))
