"""Tells whether a method is the function its file defines, or that function wrapped by something."""

from pathlib import Path
from types import FunctionType


def method_layers(actor_class: type, name: str) -> tuple[str, ...]:
    """Where each function that makes up a method is defined, ``file:function``, outermost first.

    A method that no decorator replaced has one layer: the function in the actor's own file.
    """
    layers = []
    function = vars(actor_class)[name]
    while isinstance(function, FunctionType):
        layers.append(f"{Path(function.__code__.co_filename).name}:{function.__code__.co_name}")
        function = vars(function).get("__wrapped__")
    return tuple(layers)
