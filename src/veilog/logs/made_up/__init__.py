"""Made-up logs, about nobody: a small hospital, and twins that have the sizes that they are told."""
