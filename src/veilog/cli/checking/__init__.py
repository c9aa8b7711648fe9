"""The commands that check: what a release kept, how exposed people are, whether it may be sent, what attacks prove."""
