"""Routing attention for PyTorch on CPUs: patterns make plans, one operation attends over any plan.

    attend(q, k, v, plan)       attention over a plan, differentiable
    plans                       the patterns as functions: local, routing, strided, lsh ...
    RoutingAttention            a torch.nn.Module with local and routed heads
    Model.load("runs/mine")     a model that `routing train` made
"""

try:
    import torch as _torch  # noqa: F401  (its libraries must be loaded before ours)
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "routing_transformer: needs the PyTorch of this Debian; run: apt-get install python3-torch "
        "(and use /usr/bin/python3, or a venv with --system-site-packages)",
        name=missing.name,
    ) from missing

from . import plans
from ._core import (
    ConfigError,
    Error,
    FileError,
    InputError,
    Plan,
    num_threads,
    reuse_tensor_memory,
    set_num_threads,
)
from .attention import RoutingAttention, update_centroids
from .model import Model, Token
from .operations import attend

__all__ = [
    "ConfigError",
    "Error",
    "FileError",
    "InputError",
    "Model",
    "Plan",
    "RoutingAttention",
    "Token",
    "attend",
    "num_threads",
    "plans",
    "reuse_tensor_memory",
    "set_num_threads",
    "update_centroids",
]

__version__ = "0.1.0"
