"""What the cells of a table hold: columns in the types of a log, times in the usual notations, objects of any type."""
