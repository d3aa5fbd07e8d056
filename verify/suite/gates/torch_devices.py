"""The devices as PyTorch sees them, after it has initialised CUDA."""

from __future__ import annotations

from typing import Any, Dict

from suite.library_owners import mapped_with_owners


def measure(options: Dict[str, Any]) -> Dict[str, Any]:
    """Initialise CUDA through torch, describe the devices, and list what is mapped then. Takes no options."""
    del options
    import torch

    torch.cuda.init()  # its exception says why there is no GPU; is_available() would only say that
    count = torch.cuda.device_count()
    devices = []
    for index in range(count):
        properties = torch.cuda.get_device_properties(index)
        devices.append(
            {
                "name": properties.name,
                "compute_capability": "%d.%d" % (properties.major, properties.minor),
                "memory_bytes": properties.total_memory,
                "multiprocessors": properties.multi_processor_count,
            }
        )
    # The first kernel shows whether the build has code for the device at all.
    torch.zeros(8, device="cuda").add_(1).sum().item()
    return {
        "count": count,
        "devices": devices,
        "arch_list": torch.cuda.get_arch_list(),
        "cudnn": torch.backends.cudnn.version(),
        "nccl": list(torch.cuda.nccl.version()) if torch.distributed.is_nccl_available() else None,
        "libraries": mapped_with_owners(),
    }
