# ruff: noqa: E741 - names of the methods
"""Options of a release and settings of the methods; written by ``make tables``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypedDict

from veilog.privacy.account.budgets import Number
from veilog.privacy.domain import Domain, Window
from veilog.privacy.partition import Partition
from veilog.releasing.prior import PriorChoice
from veilog.rules.rules import RulesChoice


class Keywords(TypedDict, total=False):
    """Options of a release and settings of all methods of this package.

    Editors and type checkers read them. Their help stands where they are declared: in ``OPTIONS`` of a request, and in
    the settings of a method. A call checks which of them its method has.
    """

    epsilon: Number | None
    guessing_advantage: Number | None
    delta: Number
    unit: str
    max_cases: int | None
    without_person: str | None
    times: Number | None
    window: Window | str | None
    processing: bool
    attributes: Iterable[str] | None
    attributes_share: Number | None
    persons: Number | None
    person_attributes: Iterable[str] | None
    activities: Iterable[str] | str | None
    domain: Domain | None
    subset: Partition | str | None
    prior: PriorChoice | None
    prior_map: str | Path | None
    rules: RulesChoice | None
    remember_units: bool
    seed: int | None
    allow_no_protection: bool
    as_published: bool
    rounds: int | None
    max_length: int | None
    real_share: float | None
    for_: Literal["similarity", "models", "both", "detail"]
    only_real: bool
    largest_log: int
    query: str | None
    query_parameters: str | None
    times_share: float
    start_window: str | None
    matching: Literal["optimal", "greedy"]
    attribute_names: str | None
    attribute_share: float | None
    depth: int | None
    split: Literal["uniform", "decreasing"]
    noise_prefixes: float
    count_share: float
    rest: Literal["stop", "drop", "share"]
    consistency: bool
    threshold: int | None
    program: Literal["mannhardt", "sacofa", "travas"]
    threshold_harmful: int | None
    threshold_harmless: int | None
    rules_file: str | None
    rule_share: float | None
    ended: Literal["kept", "pruned"]
    score: Literal["binary", "continuous", "published", "cost"]
    score_bound: int
    bound: int | None
    noise_relations: float
    playout: Literal["paper", "guided"] | None
    k: int
    fitness: float | None
    fitness_share: float
    fewest: int | None
    most: int | None
    subqueries: int | None
    repetitions: int
    configuration: str | None
    settings: Literal["paper", "program"]
    critic: Literal["linear", "deep"]
    columns_share: float | None
    outside: Literal["nearest", "drop"]
    critic_steps: int
    critic_rate: float
    autoencoder_steps: int
    autoencoder_share: float
    free_generator_steps: int
    b: float | None
    gamma: float | None
    alpha: int | None
    information_minutes: float
    samples: int | None
    mode: Literal["sampling", "filtering", "oversampling"]
    start_precision: float
    duration_precision: float
    prior_knowledge: Literal["example", "equation"]
    divisor: int
    epsilons: bool
    l: int
    c: float
    background: Literal["set", "multiset", "sequence", "relative"]
    time: Literal["original", "seconds", "minutes", "hours", "days"]
    frequency: float
    ties: Literal["published", "rare"]
    sensitive: str | None
    t: float
