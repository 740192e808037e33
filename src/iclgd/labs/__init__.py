"""The labs. Each folder's ``__init__`` declares what it holds; nothing else is imported until it is run."""

from importlib import import_module
from pkgutil import iter_modules

for _found in iter_modules(__path__):
    import_module(f"{__name__}.{_found.name}")
