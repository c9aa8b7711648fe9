"""Process discovery: process trees, the inductive miner, Petri nets, and quality."""
