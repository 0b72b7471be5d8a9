"""The rule book. Ids and names are known at once; the text of a rule is imported when somebody asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ptxfence.errors import ConfigError

if TYPE_CHECKING:
    from ptxfence.analysis.rules.base import Rule

_MODULES = (
    "pf101_missing_fence_raw",
    "pf102_missing_fence_waw",
    "pf103_missing_fence_war",
    "pf104_cp_async_unfenced",
    "pf110_tensormap_unfenced",
    "pf111_fence_too_narrow",
    "pf112_global_unfenced",
    "pf113_pdl_unfenced",
    "pf120_completion_unobserved",
    "pf121_mbarrier_init_unpublished",
    "pf201_redundant_fence",
    "pf202_over_wide_fence",
    "pf203_hoistable_fence",
    "pf204_issuer_side_fence",
    "pf301_undecided",
)

NAMES: dict[str, str] = {
    module.partition("_")[0].upper(): module.partition("_")[2].replace("_", "-") for module in _MODULES
}
"""Rule id to rule name, in the order of the ids."""

_IDS = {name: identifier for identifier, name in NAMES.items()}


def resolve(word: str) -> str:
    """The id of the rule called `word`, which may be an id or a name in any case.

    Raises ConfigError where there is no such rule.
    """
    wanted = word.strip()
    if wanted.upper() in NAMES:
        return wanted.upper()
    if wanted.lower() in _IDS:
        return _IDS[wanted.lower()]
    raise ConfigError(f"there is no rule {wanted!r}; `ptxfence rules` lists them")


def rule(word: str) -> Rule:
    """The rule with this id or name. Raises ConfigError where there is none."""
    identifier = resolve(word)
    module = import_module(f"ptxfence.analysis.rules.{identifier.lower()}_{NAMES[identifier].replace('-', '_')}")
    found: Rule = module.RULE
    if (found.id, found.name) != (identifier, NAMES[identifier]):
        raise ValueError(f"{module.__name__} describes {found.id} {found.name}")
    return found


def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the ids."""
    return tuple(rule(identifier) for identifier in NAMES)
