"""The commands that check: what a release kept, how exposed people are, what is to be confirmed, what attacks prove."""
