"""Names of columns that stand for persons, in the languages that logs are kept in."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["names_persons"]

_PERSONS = (
    # English, with what Dutch and French share
    *("patients?", "customers?", "clients?", "persons?", "citizens?", "applicants?", "claimants?", "insured"),
    *("holders?", "policyholders?", "cardholders?", "taxpayers?", "beneficiar(?:y|ies)", "borrowers?"),
    *("debtors?", "donors?", "tenants?", "residents?", "inhabitants?", "passengers?", "students?", "pupils?"),
    *("callers?", "requesters?", "subscribers?", "defendants?", "offenders?", "participants?"),
    # German
    *("patient(?:en|in|innen)?", "kunden?", "kundin(?:nen)?", "klient(?:en|in)?", "mandant(?:en|in)?", "person(?:en)?"),
    *("buerger(?:in)?", "burger(?:in)?", "antragsteller(?:in)?", "versicherten?", "versicherungsnehmer(?:in)?"),
    *("mieter(?:in)?", "schueler(?:in)?", "studierenden?", "bewohner(?:in)?", "einwohner(?:in)?", "bewerber(?:in)?"),
    *("schuldner(?:in)?", "mitglied(?:er|s)?", "teilnehmer(?:in)?"),
    # French
    *("patientes?", "clientes?", "personnes?", "citoyen(?:ne)?s?", "demandeu(?:r|se)s?", "assuree?s?", "usagere?s?"),
    *("adherente?s?", "locataires?", "eleves?", "etudiante?s?", "beneficiaires?", "habitante?s?", "abonnee?s?"),
    # Dutch
    *("patienten", "klant(?:en)?", "clienten", "persoon", "personen", "burgers?", "inwoners?", "aanvragers?"),
    *("verzekerden?", "huurders?", "leerling(?:en)?", "deelnemers?"),
    # Spanish and Italian
    *("pacientes?", "clientes?", "personas?", "ciudadan[oa]s?", "pazient[ei]", "client[ei]", "persona", "cittadin[oi]"),
)
_NUMBERS_OF_PERSONS = ("pid", "mrn", "bsn", "ssn", "ahv", "nhs", "burgerservicenummer", "pesel", "curp", "nir")
"""Numbers that a person has, under the name that these have."""
_WITH_NUMBER = ("subject", "member", "individual")
"""Persons only where a number of theirs is meant: the subject of a letter is none."""
_NUMBER = (
    *("ids?", "ident", "identifiers?", "identifiant", "identificador", "kennung", "kennzeichen", "uuid", "guid"),
    *("nr", "no", "nos", "num", "numbers?", "nummer", "numero", "keys?", "code", "cod", "ref", "schluessel", "sleutel"),
    *("names?", "namen?", "naam", "nom", "hash", "hashed", "pseudonym", "pseudonyme?", "pseudo", "index", "sk", "fk"),
)
_PROPERTIES = frozenset(
    re.findall(
        r"[a-z]+",
        """
    age alter leeftijd edad eta type typ soort tipo class classe klasse klas group gruppe groupe groep grupo segment
    category kategorie categorie status state stand statut etat sex gender geschlecht geslacht sexe genre date datum
    day year jahr jaar annee birth birthday geburt naissance geboorte country land pays city stadt stad ville town zip
    postal postcode plz region count anzahl aantal nombre total sum amount score rating satisfaction income risk
    language sprache langue taal service support department abteilung manager
    """,
    )
)
"""Words before or after a person that say something about them, which others share."""
_LINKING = r"(?:n|en|s|es|er|e)?"

_PERSON = re.compile(rf"(?:{'|'.join(_PERSONS)}|{'|'.join(_NUMBERS_OF_PERSONS)})")
_TOGETHER = re.compile(
    rf"(?:{'|'.join((*_PERSONS, *_NUMBERS_OF_PERSONS, *_WITH_NUMBER))}){_LINKING}(?:{'|'.join(_NUMBER)})"
)
_REST = re.compile(rf"(?:{'|'.join(_NUMBER)}|[0-9]+|[a-z])")


def names_persons(column: str) -> bool:
    """Return whether a column is called after persons, as ``Patient``, ``kunden_nr`` and ``case:PatientID`` are.

    The name has a word for a person to whom cases belong, and after it nothing but words for a number or a name. Staff
    (``Resource``, ``Employee``) is none: it works on cases. What persons have (``PatientAge``, ``Customer type``) is
    none either.
    """
    words = _words(column)
    if not set(words).isdisjoint(_PROPERTIES):
        return False
    return any(
        (_PERSON.fullmatch(word) or _TOGETHER.fullmatch(word) or (word in _WITH_NUMBER and len(words) > i + 1))
        and all(_REST.fullmatch(rest) for rest in words[i + 1 :])
        for i, word in enumerate(words)
    )


def _words(column: str) -> list[str]:
    """Return the words of a name in small letters without accents: ``patient`` and ``id`` for ``PatientID``."""
    text = unicodedata.normalize("NFC", column)
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("Ä", "Ae"), ("Ö", "Oe"), ("Ü", "Ue"), ("ß", "ss")):
        text = text.replace(umlaut, letters)
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])", " ", plain)
    return re.findall(r"[a-z]+|[0-9]+", apart.lower())
