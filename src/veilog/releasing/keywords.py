# ruff: noqa: E501, E741 - words and names of the methods
"""Options of a release and settings of the methods, for editors and type checkers: by ``make tables``, never edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict

from veilog.privacy.account.accounting import Number
from veilog.privacy.domain import Domain, Window
from veilog.privacy.part import Part


class Keywords(TypedDict, total=False):
    """The options of a release, and the settings of all methods of this package; which of them a method has is checked
    when it is called."""

    epsilon: Number | None
    """Privacy budget; smaller is more private, 0.1 to 1 are usual."""
    guessing_advantage: Number | None
    """Instead of epsilon: the most by which a chance to guess who is in the log may rise, e.g. 0.2."""
    delta: Number
    """What chances may exceed the factor exp(epsilon) by; well below one over the cases."""
    unit: str
    """Who is protected: case; the column that names a person; or person, see --max-cases."""
    max_cases: int | None
    """Cases of a person that count, drawn at random; with --unit person: that nobody exceeds."""
    unnamed: str | None
    """Cases without a value in the column of --unit: left-out, or own: each as of a person without other cases, which the guarantee then takes for granted. [default: left-out]"""
    times: Number | None
    """Share of epsilon that gives the events times, e.g. 0.3."""
    window: Window | str | None
    """START..END: when cases start (ISO dates); or log, to take it from the log."""
    processing: bool
    """With the times, release when events began (start_timestamp), so how long they take."""
    attributes: Iterable[str] | None
    """Attributes to release: a,b,c; case:NAME for one that events have and that never changes in a case."""
    attributes_share: Number | None
    """Share of epsilon for attributes; a quarter."""
    activities: Iterable[str] | str | None
    """The public activities: a,b,c or @FILE with one on each line; log: all labels of the log may be known; privately: find those that enough cases have, with a delta."""
    domain: Domain | None
    """NAME=a|b|c, NAME=LOW..HIGH or NAME=@FILE: the public values of an attribute. Repeatable."""
    part: Part | str | None
    """Release these cases alone: month=2024-03 (or week=2024-W11, quarter=2024-Q1, year=2024) by their start in UTC, or ATTRIBUTE=VALUE; none for those without. Different parts of one rule cost a case no more than one of them."""
    remember_units: bool
    """With --part or --since: keep a digest (16 bytes) of the name of each case or person in the ledger, and leave out those that another part of the rule had."""
    seed: int | None
    """Make a run repeatable, for experiments: voids the guarantee."""
    allow_no_protection: bool
    """Allow a protection level of none in practice, as of any epsilon above 3.89."""
    as_published: bool
    """The paper's own calibration, for comparison; see what is derived."""
    rounds: int | None
    """evolve: rounds of votes; by default one or two, by the noisy size"""
    max_length: int | None
    """evolve: the longest trace that is imagined; by default the declared length, or 200"""
    real_share: float | None
    """evolve: with a delta, share of epsilon that finds real variants; chosen if not given"""
    for_: Literal["similarity", "models", "both", "detail"]
    """evolve: what the release is for: similarity to the log, models discovered from it, a file for each of both, or all variants that votes tell of"""
    only_real: bool
    """evolve: with a delta, release only variants that are certain to be real"""
    largest_log: int
    """evolve, laplace, sacofa, df-laplace, sapa, dpim, travag: cases of the largest log expected; a budget too small even for it is refused"""
    query: str | None
    """pripel: variant method that traces come from; evolve, or as published laplace; libra: certified: the variant method that is asked about samples; evolve"""
    query_parameters: str | None
    """pripel, libra: parameters of the query: name=value,name=value"""
    times_share: float
    """pripel, libra: certified: share of epsilon for times; 0 releases none"""
    start_window: str | None
    """pripel, libra: certified: START..END in which cases start; log; or a made-up year"""
    matching: Literal["optimal", "greedy"]
    """pripel: as published: how traces are matched"""
    attribute_names: str | None
    """pripel: attributes to release, a,b,c; certified none, as published all by default"""
    attribute_share: float | None
    """pripel: certified: share of epsilon for attributes; a quarter"""
    depth: int | None
    """laplace, sacofa: length of the longest prefix; certified, a noisy 80 % quantile if not given"""
    split: Literal["uniform", "decreasing"]
    """laplace, sacofa: how the depths share the budget"""
    noise_prefixes: float
    """laplace, sacofa: empty prefixes expected to survive at each level"""
    count_share: float
    """laplace, sacofa: share of the budget for the final counts; df-laplace, sapa, dpim: share of the budget for the number of cases, certified"""
    rest: Literal["stop", "drop", "share"]
    """laplace, sacofa: cases of a prefix that nothing continues: released as traces that stop there, dropped, or shared out"""
    consistency: bool
    """laplace, sacofa: whether counts of prefixes and of their continuations are reconciled"""
    threshold: int | None
    """laplace: count from which on a prefix survives; found from the noise if not given"""
    program: Literal["mannhardt", "sacofa", "travas"]
    """laplace: as published: Mannhardt et al.'s program; SaCoFa's, which never prunes a trace that has ended; or TraVaS's"""
    threshold_harmful: int | None
    """sacofa: count from which on a prefix that breaks a rule survives"""
    threshold_harmless: int | None
    """sacofa: count from which on a prefix that breaks none survives"""
    rules: str | None
    """sacofa: file of rules known from elsewhere than the log"""
    rule_share: float | None
    """sacofa: share of the budget that learns rules; 0.1 if no file is given"""
    ended: Literal["kept", "pruned"]
    """sacofa: as published: traces that have ended below the threshold; the program keeps them, Algorithm 1 prunes them"""
    score: Literal["binary", "continuous", "published", "cost"]
    """sacofa: how bad breaking rules is; tlkc: what is suppressed first: as published, or the element that costs the fewest cases for what it mends"""
    score_bound: int
    """sacofa: with the continuous score, broken rules that count at most"""
    bound: int | None
    """df-laplace, sapa, dpim: directly-follows pairs a case counts in full; a noisy 60 % quantile if not given"""
    noise_relations: float
    """df-laplace, sapa, dpim: relations expected to survive that are only noise"""
    playout: Literal["paper", "guided"] | None
    """df-laplace, sapa: paper, or guided (the default when certified)"""
    k: int
    """sapa: longest distance of activities that may follow each other directly; tlkc: cases that match whatever is known, at least; pretsa: cases that share each prefix and each trace, at least"""
    fitness: float | None
    """dpim: fitness that is enough; 0.9 of the steps of cases, as published 0.95 of tokens"""
    fitness_share: float
    """dpim: share of the budget for the fitness of trees, certified"""
    fewest: int | None
    """dpim: as published: fewest pairs taken; 15 less than occur if not given"""
    most: int | None
    """dpim: as published: most pairs taken; 15 more than occur if not given"""
    subqueries: int | None
    """utravas: number of subqueries, 2; as published, the largest number tried, 10"""
    repetitions: int
    """utravas: as published: runs averaged for each number tried"""
    configuration: (
        Literal[
            "bpic13-2-0.01",
            "bpic13-1-0.01",
            "bpic13-0.1-0.01",
            "bpic13-0.01-0.01",
            "bpic13-2-0.001",
            "bpic13-1-0.001",
            "bpic13-0.1-0.001",
            "bpic13-0.01-0.001",
            "bpic13-2-1e-4",
            "bpic13-1-1e-4",
            "bpic13-0.1-1e-4",
            "bpic13-0.01-1e-4",
            "bpic13-2-1e-5",
            "bpic13-1-1e-5",
            "bpic13-0.1-1e-5",
            "bpic13-0.01-1e-5",
            "bpic13-2-1e-6",
            "bpic13-1-1e-6",
            "bpic13-0.1-1e-6",
            "bpic13-0.01-1e-6",
            "sepsis-2-0.01",
            "sepsis-1-0.01",
            "sepsis-0.1-0.01",
            "sepsis-0.01-0.01",
            "sepsis-2-0.001",
            "sepsis-1-0.001",
            "sepsis-0.1-0.001",
            "sepsis-2-1e-4",
            "sepsis-1-1e-4",
            "sepsis-0.1-1e-4",
            "sepsis-2-1e-5",
            "sepsis-1-1e-5",
            "sepsis-0.1-1e-5",
            "sepsis-2-1e-6",
            "sepsis-1-1e-6",
            "sepsis-0.1-1e-6",
        ]
        | None
    )
    """travag: as published: the paper's settings by name"""
    settings: Literal["paper", "program"]
    """travag, amun: as published: settings as the paper has them, or its authors' program"""
    critic: Literal["linear", "deep"]
    """travag: linear, or deep as in the paper"""
    columns_share: float | None
    """travag: share of epsilon that finds the variants; by default more, the smaller delta is"""
    outside: Literal["nearest", "drop"]
    """travag: cases of variants that cannot be drawn: counted in the nearest, or dropped"""
    critic_steps: int
    """travag: noised steps of the critic"""
    critic_rate: float
    """travag: chance of a case to take part in a step"""
    autoencoder_steps: int
    """travag: noised steps of the autoencoder"""
    autoencoder_share: float
    """travag: share of the gradients' budget for the autoencoder's noised steps"""
    free_generator_steps: int
    """travag: steps of the generator on released numbers, at no cost"""
    b: float | None
    """libra: as published: scale of all noise; 2.5, or more if epsilon needs it"""
    gamma: float | None
    """libra: share of the cases in a sample; 0.9, or as published 0.05"""
    alpha: int | None
    """libra: as published: order of Renyi privacy; the one that allows the least noise"""
    information_minutes: float
    """libra: as published: change of a mean time that is news, in minutes"""
    samples: int | None
    """libra: certified: how many samples are drawn; 1"""
    mode: Literal["sampling", "filtering", "oversampling"]
    """amun: replicate and delete cases; filter risky cases before that; or only replicate"""
    start_precision: float
    """amun: days within which a guess of a case's start is right"""
    duration_precision: float
    """amun: seconds within which a guess of a step's time is right"""
    prior: Literal["example", "equation"]
    """amun: the prior of a transition's smallest times: as in the paper's example, or by its equation (1), larger"""
    divisor: int
    """amun: number that divides all epsilons, such as the length of the longest case (Propositions A.3 and A.7)"""
    epsilons: bool
    """amun: write the epsilons of events and cases into the log, as the paper does; they reveal raw times"""
    l: int
    """tlkc: events of a case that an adversary knows, at most"""
    c: float
    """tlkc: share of matching cases that have one value of a sensitive attribute, at most"""
    background: Literal["set", "multiset", "sequence", "relative"]
    """tlkc: what is known of events"""
    time: Literal["original", "seconds", "minutes", "hours", "days"]
    """tlkc: times as they are, or whole units since the case began"""
    frequency: float
    """tlkc: share of cases from which on a pattern is worth keeping"""
    ties: Literal["published", "rare"]
    """tlkc: what is suppressed first of elements with equal scores: as in the published figures, or the rare one"""
    sensitive: str | None
    """tlkc: attributes to release and to bound by c: a,b; pretsa: attribute of events to release and to bound by t; or duration"""
    t: float
    """pretsa: distance of a sensitive attribute's values after a prefix, at most"""
