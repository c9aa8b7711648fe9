"""Part C: what NIST SP 800-226 (2025) asks of a differential privacy guarantee, and where this release answers it."""

from __future__ import annotations

from veilog._language import gettext as _
from veilog._language import pgettext
from veilog.report.dossier.parts import Block, DossierPart, DossierTable, Section, Text, table
from veilog.report.dossier.subject import Subject
from veilog.report.explorer import short
from veilog.report.figures import figure
from veilog.report.stated import stated
from veilog.report.words import headline

__all__ = ["nist"]


def nist(subject: Subject) -> DossierPart:
    """Return the part."""
    return DossierPart(
        "C",
        _("Against NIST SP 800-226"),
        _(
            "The publication orders what a guarantee rests on as a pyramid: what is above is worth no more than "
            "what is below. Its topics, and what is known of this release."
        ),
        (
            Section("C.1", _("The guarantee: parameters, variant, unit"), (_guarantee(subject),)),
            Section("C.2", _("Mechanisms, accuracy and bias"), (_mechanisms(subject), *_charges(subject))),
            Section("C.3", _("Deployment: trust, implementation, security"), (_deployment(subject),)),
        ),
    )


def _guarantee(subject: Subject) -> DossierTable:
    g = subject.guarantee
    if not g.proven:
        said = _("none: {reasons}", reasons=short("; ".join(map(stated, g.reasons)), 600))
        return table(
            (_("topic"), _("this release")),
            (_("privacy parameters"), said),
            (_("variant"), pgettext("variant", "none")),
            (_("unit of privacy"), _("nobody")),
            (_("comparing guarantees"), _("there is nothing to compare")),
            (_("other releases of the same data"), _("nothing bounds what this one adds to them")),
        )
    delta = figure(g.delta)
    return table(
        (_("topic"), _("this release")),
        (
            _("privacy parameters"),
            _(
                "ε = {epsilon}, δ = {delta}; in words: {level} (part B)",
                epsilon=figure(g.epsilon),
                delta=delta,
                level=headline(g).rstrip("."),
            ),
        ),
        (_("variant"), _("approximate differential privacy") if g.delta else _("pure differential privacy")),
        (
            _("unit of privacy"),
            _(
                "one {unit}: {neighbours}; unbounded (add or remove)",
                unit=g.unit,
                neighbours=short(stated(g.neighbours), 400),
            ),
        ),
        (_("comparing guarantees"), _("only with the same unit, and with δ beside ε; part B gives both as chances")),
        (
            _("other releases of the same data"),
            _("sequential composition, kept by the ledger (B.2); of other publishers it knows nothing"),
        ),
    )


def _mechanisms(subject: Subject) -> DossierTable:
    told = subject.told
    return table(
        (_("topic"), _("this release")),
        (
            _("algorithm"),
            _("{method}; the log is a table of cases, each a sequence of activities", method=short(told.method, 80)),
        ),
        (pgettext("NIST", "accuracy"), _("yours to fill: veilog compare --purposes all, for the owner")),
        (
            _("systemic bias"),
            _("rare paths, and with them small groups of people, are lost first; do not judge them by the release"),
        ),
        (_("human bias"), _("conditions are the owner's word: they are listed on the first page")),
        (
            _("statistical bias"),
            _("counts below zero become zero, rare variants fall away; part E says what not to conclude"),
        ),
        (
            _("synthetic data"),
            _("made of noisy answers: similarity to the original is no measure of privacy, the bound is"),
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
                short(stated(c.purpose), 200),
                short(stated(c.mechanism), 200),
                short(stated(c.sensitivity), 200),
                figure(c.epsilon),
                figure(c.delta),
            )
            for c in plain
        )
        more = len(g.charges) - len(rows)
        after = (Text(_("And {n} more.", n=more)),) if more > 0 else ()
        return (
            Text(_("Every question that was asked:")),
            table((_("for"), _("noise"), _("sensitivity"), "ε", "δ"), *rows),
            *after,
        )
    made = tuple(
        (short(o.target, 200), short(o.method, 100), figure(o.epsilon), figure(o.delta))
        for o in subject.told.operations[:40]
    )
    return (Text(_("What the file states of its making:")), table((_("what"), _("by"), "ε", "δ"), *made))


def _deployment(subject: Subject) -> DossierTable:
    g = subject.guarantee
    return table(
        (_("topic"), _("this release")),
        (_("query model"), _("non-interactive: one file is released; nobody can ask further questions")),
        (
            _("trust model"),
            _("central: the owner of the log is trusted, and the machine it is released on; the recipient is not"),
        ),
        (
            _("threat model"),
            _("any recipient, any knowledge, any computing power, at any time")
            if g.proven
            else pgettext("threat model", "none"),
        ),
        (
            _("numerical attacks"),
            _("noise is drawn exactly, in whole numbers; budgets are exact fractions, printed numbers are rounded up"),
        ),
        (
            _("timing and other side channels"),
            _("not covered: how long a run took is never released; machine, memory, backups are yours"),
        ),
        (_("randomness"), _("{noise}; a run with a seed has no guarantee", noise=short(stated(g.numerics), 200))),
        (_("testing"), _("proofs beside the code, property tests, audits by attack from outside and inside")),
        (_("security and access to the original"), _("yours to fill")),
        (_("exposure while the data were collected"), _("yours to fill: no release mends it")),
        (_("conditions"), "; ".join(c.code for c in g.conditions) or pgettext("conditions", "none")),
    )
