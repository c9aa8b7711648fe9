"""What the owner of a log should know of its releases, for their eyes alone: notes on its cases, times and attributes,
whether it was released or asked before, and what its ledger says of other releases."""
