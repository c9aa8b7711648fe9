"""How rows of a table become the events of a log, checked and in their usual form, and how events become rows again."""
