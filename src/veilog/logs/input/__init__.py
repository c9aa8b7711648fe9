"""How a log comes in: a source that is named and opened once, the reader of its format, and what its columns mean."""
