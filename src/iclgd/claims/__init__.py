"""Claims: sentences from papers, made executable. One file a paper; what is run, what it says, what was measured."""
