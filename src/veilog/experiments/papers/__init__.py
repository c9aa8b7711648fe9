"""The papers' tables and figures as data, and the measures that they need."""
