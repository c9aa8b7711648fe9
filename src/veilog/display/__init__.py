"""How the command shows things to people: tables and panels. Nothing here computes anything."""

from __future__ import annotations

from veilog.display.accounts import account_line, account_table, account_view
from veilog.display.audits import audit_view
from veilog.display.comparisons import comparison_table, comparison_view
from veilog.display.logs import attributes_table, findings_table, info_table, persons_lines, variants_table
from veilog.display.methods import method_view, methods_table
from veilog.display.releases import expected_view, guarantee_panel, release_brief, release_view, strength_style
from veilog.display.risks import attack_lines, attack_tables, risk_lines, risk_table, unique_line
from veilog.display.tables import key_values

__all__ = [
    "account_line",
    "account_table",
    "account_view",
    "attack_lines",
    "attack_tables",
    "attributes_table",
    "audit_view",
    "comparison_table",
    "comparison_view",
    "expected_view",
    "findings_table",
    "guarantee_panel",
    "info_table",
    "key_values",
    "method_view",
    "methods_table",
    "persons_lines",
    "release_brief",
    "release_view",
    "risk_lines",
    "risk_table",
    "strength_style",
    "unique_line",
    "variants_table",
]
