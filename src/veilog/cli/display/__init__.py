"""How the command shows things to people: tables and panels. Nothing here computes anything."""

from __future__ import annotations

from veilog.cli.display.measures import attack_lines as attack_lines
from veilog.cli.display.measures import attack_tables as attack_tables
from veilog.cli.display.measures import audit_view as audit_view
from veilog.cli.display.measures import comparison_table as comparison_table
from veilog.cli.display.measures import comparison_view as comparison_view
from veilog.cli.display.measures import risk_lines as risk_lines
from veilog.cli.display.measures import risk_table as risk_table
from veilog.cli.display.measures import rules_table as rules_table
from veilog.cli.display.measures import unique_line as unique_line
from veilog.cli.display.releases import account_line as account_line
from veilog.cli.display.releases import account_table as account_table
from veilog.cli.display.releases import account_view as account_view
from veilog.cli.display.releases import attributes_table as attributes_table
from veilog.cli.display.releases import expected_view as expected_view
from veilog.cli.display.releases import findings_table as findings_table
from veilog.cli.display.releases import guarantee_panel as guarantee_panel
from veilog.cli.display.releases import info_table as info_table
from veilog.cli.display.releases import key_values as key_values
from veilog.cli.display.releases import listing as listing
from veilog.cli.display.releases import method_view as method_view
from veilog.cli.display.releases import methods_table as methods_table
from veilog.cli.display.releases import persons_lines as persons_lines
from veilog.cli.display.releases import release_brief as release_brief
from veilog.cli.display.releases import release_view as release_view
from veilog.cli.display.releases import strength_style as strength_style
from veilog.cli.display.releases import variants_table as variants_table
