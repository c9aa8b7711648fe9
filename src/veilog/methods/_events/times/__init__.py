"""The times of a release: when cases start, how long they last, where their time goes, how long events take."""
