"""Process discovery: process trees, the inductive miner, Petri nets, and how well they fit a log."""
