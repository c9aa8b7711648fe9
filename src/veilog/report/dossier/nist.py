"""Part C: what NIST SP 800-226 (2025) asks of a differential privacy guarantee, and where this release answers it."""

from __future__ import annotations

from veilog.report.dossier.parts import Block, Part, Section, Table, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short
from veilog.report.figures import figure

__all__ = ["nist"]


def nist(subject: Subject) -> Part:
    """Return the part."""
    return Part(
        "C",
        "Against NIST SP 800-226",
        "The publication orders what a guarantee rests on as a pyramid: what is above is worth no more than "
        "what is below. "
        "Its topics, and what is known of this release.",
        (
            Section("C.1", "The guarantee: parameters, variant, unit", (_guarantee(subject),)),
            Section("C.2", "Mechanisms, accuracy and bias", (_mechanisms(subject), *_charges(subject))),
            Section("C.3", "Deployment: trust, implementation, security", (_deployment(subject),)),
        ),
    )


def _guarantee(subject: Subject) -> Table:
    g = subject.guarantee
    if not g.proven:
        said = "none: " + short("; ".join(g.reasons), 600)
        return table(
            ("topic", "this release"),
            ("privacy parameters", said),
            ("variant", "none"),
            ("unit of privacy", "nobody"),
            ("comparing guarantees", "there is nothing to compare"),
            ("other releases of the same data", "nothing bounds what this one adds to them"),
        )
    delta = figure(g.delta)
    return table(
        ("topic", "this release"),
        ("privacy parameters", f"ε = {figure(g.epsilon)}, δ = {delta}; in words: protection is {g.strength} (part B)"),
        ("variant", "approximate differential privacy" if g.delta else "pure differential privacy"),
        ("unit of privacy", f"one {g.unit}: {short(g.neighbours, 400)}; unbounded (add or remove)"),
        ("comparing guarantees", "only with the same unit, and with δ beside ε; part B gives both as chances"),
        (
            "other releases of the same data",
            "sequential composition, kept by the ledger (B.2); of other publishers it knows nothing",
        ),
    )


def _mechanisms(subject: Subject) -> Table:
    told = subject.told
    return table(
        ("topic", "this release"),
        ("algorithm", f"{short(told.method, 80)}; the log is a table of cases, each a sequence of activities"),
        ("accuracy", "yours to fill: veilog compare --purposes all, for the owner"),
        (
            "systemic bias",
            "rare paths, and with them small groups of people, are lost first; do not judge them by the release",
        ),
        ("human bias", "conditions are the owner's word: they are listed on the first page"),
        (
            "statistical bias",
            "counts below zero become zero, rare variants fall away; part E says what not to conclude",
        ),
        ("synthetic data", "made of noisy answers: similarity to the original is no measure of privacy, the bound is"),
    )


def _charges(subject: Subject) -> tuple[Block, ...]:
    g = subject.guarantee
    if not g.proven:
        return ()
    if g.charges:
        plain = [charge.plain() for charge in g.charges[:60]]
        rows = tuple(
            (
                short(c.purpose, 200),
                short(c.mechanism, 200),
                short(c.sensitivity, 200),
                figure(c.epsilon),
                figure(c.delta),
            )
            for c in plain
        )
        more = len(g.charges) - len(rows)
        after = (Text(f"And {more:,} more."),) if more > 0 else ()
        return (Text("Every question that was asked:"), table(("for", "noise", "sensitivity", "ε", "δ"), *rows), *after)
    made = tuple(
        (short(o.target, 200), short(o.method, 100), figure(o.epsilon), figure(o.delta))
        for o in subject.told.operations[:40]
    )
    return (Text("What the file states of its making:"), table(("what", "by", "ε", "δ"), *made))


def _deployment(subject: Subject) -> Table:
    g = subject.guarantee
    return table(
        ("topic", "this release"),
        ("query model", "non-interactive: one file is released; nobody can ask further questions"),
        (
            "trust model",
            "central: the owner of the log is trusted, and the machine it is released on; the recipient is not",
        ),
        ("threat model", "any recipient, any knowledge, any computing power, at any time" if g.proven else "none"),
        (
            "numerical attacks",
            "noise is drawn exactly, in whole numbers; budgets are exact fractions, printed numbers are rounded up",
        ),
        (
            "timing and other side channels",
            "not covered: how long a run took is never released; machine, memory, backups are yours",
        ),
        ("randomness", f"{short(g.numerics, 200)}; a run with a seed has no guarantee"),
        ("testing", "proofs beside the code, property tests, audits by attack from outside and inside"),
        ("security and access to the original", "yours to fill"),
        ("exposure while the data were collected", "yours to fill: no release mends it"),
        ("conditions", "; ".join(c.code for c in g.conditions) or "none"),
    )
