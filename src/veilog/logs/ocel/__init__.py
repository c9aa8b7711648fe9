"""Object-centric logs (OCEL 2.0), flattened: the objects of one type are the cases."""
