"""Part C: what NIST SP 800-226 (2025) asks of a differential privacy guarantee, and where this release answers it."""

from __future__ import annotations

from veilog._language import gettext, pgettext
from veilog.report.dossier.parts import Block, Part, Section, Table, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short
from veilog.report.figures import figure
from veilog.report.stated import stated
from veilog.report.words import strength_in_words

__all__ = ["nist"]


def nist(subject: Subject) -> Part:
    """Return the part."""
    return Part(
        "C",
        gettext("Against NIST SP 800-226"),
        gettext(
            "The publication orders what a guarantee rests on as a pyramid: what is above is worth no more than "
            "what is below. Its topics, and what is known of this release."
        ),
        (
            Section("C.1", gettext("The guarantee: parameters, variant, unit"), (_guarantee(subject),)),
            Section("C.2", gettext("Mechanisms, accuracy and bias"), (_mechanisms(subject), *_charges(subject))),
            Section("C.3", gettext("Deployment: trust, implementation, security"), (_deployment(subject),)),
        ),
    )


def _guarantee(subject: Subject) -> Table:
    g = subject.guarantee
    if not g.proven:
        said = gettext("none: {reasons}", reasons=short("; ".join(map(stated, g.reasons)), 600))
        return table(
            (gettext("topic"), gettext("this release")),
            (gettext("privacy parameters"), said),
            (gettext("variant"), pgettext("variant", "none")),
            (gettext("unit of privacy"), gettext("nobody")),
            (gettext("comparing guarantees"), gettext("there is nothing to compare")),
            (gettext("other releases of the same data"), gettext("nothing bounds what this one adds to them")),
        )
    delta = figure(g.delta)
    return table(
        (gettext("topic"), gettext("this release")),
        (
            gettext("privacy parameters"),
            gettext(
                "ε = {epsilon}, δ = {delta}; in words: protection is {strength} (part B)",
                epsilon=figure(g.epsilon),
                delta=delta,
                strength=strength_in_words(g.strength),
            ),
        ),
        (
            gettext("variant"),
            gettext("approximate differential privacy") if g.delta else gettext("pure differential privacy"),
        ),
        (
            gettext("unit of privacy"),
            gettext(
                "one {unit}: {neighbours}; unbounded (add or remove)",
                unit=g.unit,
                neighbours=short(stated(g.neighbours), 400),
            ),
        ),
        (
            gettext("comparing guarantees"),
            gettext("only with the same unit, and with δ beside ε; part B gives both as chances"),
        ),
        (
            gettext("other releases of the same data"),
            gettext("sequential composition, kept by the ledger (B.2); of other publishers it knows nothing"),
        ),
    )


def _mechanisms(subject: Subject) -> Table:
    told = subject.told
    return table(
        (gettext("topic"), gettext("this release")),
        (
            gettext("algorithm"),
            gettext(
                "{method}; the log is a table of cases, each a sequence of activities", method=short(told.method, 80)
            ),
        ),
        (pgettext("NIST", "accuracy"), gettext("yours to fill: veilog compare --purposes all, for the owner")),
        (
            gettext("systemic bias"),
            gettext(
                "rare paths, and with them small groups of people, are lost first; do not judge them by the release"
            ),
        ),
        (gettext("human bias"), gettext("conditions are the owner's word: they are listed on the first page")),
        (
            gettext("statistical bias"),
            gettext("counts below zero become zero, rare variants fall away; part E says what not to conclude"),
        ),
        (
            gettext("synthetic data"),
            gettext("made of noisy answers: similarity to the original is no measure of privacy, the bound is"),
        ),
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
        after = (Text(gettext("And {n} more.", n=more)),) if more > 0 else ()
        return (
            Text(gettext("Every question that was asked:")),
            table((gettext("for"), gettext("noise"), gettext("sensitivity"), "ε", "δ"), *rows),
            *after,
        )
    made = tuple(
        (short(o.target, 200), short(o.method, 100), figure(o.epsilon), figure(o.delta))
        for o in subject.told.operations[:40]
    )
    return (
        Text(gettext("What the file states of its making:")),
        table((gettext("what"), gettext("by"), "ε", "δ"), *made),
    )


def _deployment(subject: Subject) -> Table:
    g = subject.guarantee
    return table(
        (gettext("topic"), gettext("this release")),
        (gettext("query model"), gettext("non-interactive: one file is released; nobody can ask further questions")),
        (
            gettext("trust model"),
            gettext(
                "central: the owner of the log is trusted, and the machine it is released on; the recipient is not"
            ),
        ),
        (
            gettext("threat model"),
            gettext("any recipient, any knowledge, any computing power, at any time")
            if g.proven
            else pgettext("threat model", "none"),
        ),
        (
            gettext("numerical attacks"),
            gettext(
                "noise is drawn exactly, in whole numbers; budgets are exact fractions, printed numbers are rounded up"
            ),
        ),
        (
            gettext("timing and other side channels"),
            gettext("not covered: how long a run took is never released; machine, memory, backups are yours"),
        ),
        (
            gettext("randomness"),
            gettext("{noise}; a run with a seed has no guarantee", noise=short(stated(g.numerics), 200)),
        ),
        (
            gettext("testing"),
            gettext("proofs beside the code, property tests, audits by attack from outside and inside"),
        ),
        (gettext("security and access to the original"), gettext("yours to fill")),
        (gettext("exposure while the data were collected"), gettext("yours to fill: no release mends it")),
        (gettext("conditions"), "; ".join(c.code for c in g.conditions) or pgettext("conditions", "none")),
    )
