#!/usr/bin/env python3
"""Write tests/interchange/golden/state_dict.pt: a state_dict as PyTorch itself saves it.

Only making the file again needs Debian's python3-torch; no build and no test does:

    /usr/bin/python3 scripts/state_dict_values.py tests/interchange/golden/state_dict.pt
"""

import sys
from collections import OrderedDict

import torch


def state_dict() -> "OrderedDict[str, torch.Tensor]":
    """Return tensors of many types, views of one storage among them."""
    linear = torch.nn.Linear(3, 2)
    with torch.no_grad():
        linear.weight.copy_(torch.arange(6.0).view(2, 3))
        linear.bias.copy_(torch.tensor([-1.0, 0.5]))
    model = torch.nn.ModuleDict({"linear": linear})
    values = model.state_dict()  # with the versions of its modules beside it
    values["transposed"] = linear.weight.data.t()
    values["part"] = torch.nn.Parameter(linear.weight.data[1, 1:])
    values["step"] = torch.tensor(3_530_000_000)
    values["initted"] = torch.tensor(True)
    values["double"] = torch.tensor([0.1], dtype=torch.float64)
    values["half"] = torch.tensor([1.5], dtype=torch.float16)
    values["bfloat"] = torch.tensor([1.5], dtype=torch.bfloat16)
    values["nothing"] = torch.zeros(0, 4)
    return values


if __name__ == "__main__":
    torch.save(state_dict(), sys.argv[1])
