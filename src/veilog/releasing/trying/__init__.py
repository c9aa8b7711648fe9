"""A plan is tried on made-up logs before anything is asked: what it would cost, and what it is expected to be worth on
twins of the log's sizes, which are declared or found out with noise."""
