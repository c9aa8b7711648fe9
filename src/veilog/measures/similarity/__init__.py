"""How alike two logs are: variants compared by an optimal transport of edit distances."""
