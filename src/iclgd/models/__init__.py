"""Language models as subjects: loading, capture of attention, traces, and where their parameters live."""
