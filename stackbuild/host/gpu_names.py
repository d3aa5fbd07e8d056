"""GPU names as tools write them (cut off, with dashes, run together) as products of the facts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackbuild.facts.rows import Gpu
from stackbuild.facts.tables import Facts, product_key

# Words around a product's name that a tool may cut off in the middle.
_TRAILING_WORDS = ("generation", "edition", "laptop", "gpu", "graphics", "sxm", "pcie", "nvidia")
_GLUED = re.compile(r"\b(rtx|gtx|titan|quadro|tesla)(?=\d|[a-z]\d)", re.IGNORECASE)
_GLUED_SUFFIX = re.compile(r"(?<=\d)(ti|super|ada)\b", re.IGNORECASE)
_MIG_PROFILE = re.compile(r"[-_ ]*(?:mig[-_ ]+)?\d+g[._]\d+gb(?:[.+][a-z.]+)?$", re.IGNORECASE)
_CUT = re.compile(r"\s*\.\.\.$")
_BRANDS = ("geforce", "tesla", "quadro", "titan")
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class NamedGpu:
    """A GPU name made out.

    Attributes:
        name: The product's name where it was made out, else the name as written.
        compute_capability: None when the facts do not know the name or it fits several.
        brand: NVML's brand where the name says it, else None.
        note: What could not be made out, or was; empty for a name that is plain.
    """

    name: str
    compute_capability: str | None
    brand: str | None
    note: str = ""


def without_mig_profile(name: str) -> tuple[str, str]:
    """Split ``A100-SXM4-40GB-MIG-1g.5gb`` or ``a100_3g.20gb`` into the GPU's name and the profile."""
    match = _MIG_PROFILE.search(name)
    if match is None or match.start() == 0:
        return name, ""
    profile = match.group().lstrip("-_ ")
    return name[: match.start()], re.sub(r"^mig[-_ ]+", "", profile, flags=re.IGNORECASE).replace("_", ".")


def named_gpu(written: str, facts: Facts) -> NamedGpu:
    """Make out a GPU's name.

    A name cut off with dots (nvidia-smi cuts at a fixed width) and a scheduler's short name (``rtx4090``,
    ``nvidia_a100``) count as made out when every product that fits has one compute capability.

    Args:
        written: The name as a tool or a person wrote it.
        facts: The fact tables.
    """
    text = " ".join(written[:_LONGEST].split())
    brand = next((word for word in _BRANDS if word in text.lower()), None)
    cut = _CUT.search(text) is not None
    row = None if cut else facts.gpu(text)
    if row is not None:
        return NamedGpu(text, row.compute_capability, brand)
    if cut:
        fitting = _fitting(text, facts)
    else:
        plain = _GLUED_SUFFIX.sub(r" \1", _GLUED.sub(r"\1 ", text.replace("_", " ")))
        exact = facts.gpu(plain)
        fitting = (exact,) if exact is not None else facts.gpus_like(plain)
    capabilities = sorted({row.compute_capability for row in fitting})
    products = ", ".join(row.product for row in fitting[:6])
    if not fitting:
        why = "is cut off too early to tell which it is" if cut else "is not in the facts"
        return NamedGpu(text, None, brand, f"GPU {text!r} {why}; its compute capability is unknown")
    if len(capabilities) > 1:
        return NamedGpu(
            text,
            None,
            brand,
            f"GPU {text!r} can be {products}: give the whole name (nvidia-smi -L) to tell them apart",
        )
    if len(fitting) == 1:
        return NamedGpu(fitting[0].product, capabilities[0], brand, f"GPU {text!r} is read as {products}")
    return NamedGpu(
        text,
        capabilities[0],
        brand,
        f"GPU {text!r} can be {products}; all have compute capability {capabilities[0]}",
    )


def _fitting(text: str, facts: Facts) -> tuple[Gpu, ...]:
    """The products that a name cut off at its end can be."""
    kept = _CUT.sub("", text)
    whole = kept != text.removesuffix("...")
    words = [word for word in re.split(r"[^a-z0-9]+", kept.lower()) if word]
    if not words:
        return ()
    # The last word is whole when a space stands before the dots, and else perhaps cut.
    last = "" if whole else words.pop()
    if last and any(word.startswith(last) for word in _TRAILING_WORDS):
        last = ""
    start = product_key(" ".join(words)).split()
    if not start and not product_key(last):
        return ()
    found = []
    for row in facts.table("gpus").rows:
        key = product_key(row.product).split()
        rest = key[len(start) :]
        if key[: len(start)] != start:
            continue
        if not last or (rest and rest[0].startswith(last)) or (not rest and not product_key(last)):
            found.append(row)
    return tuple(found)
