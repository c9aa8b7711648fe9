"""Noisy directly-follows relations and traces played out from them."""
