"""From released variants to a released event log: times, attributes, cases."""
