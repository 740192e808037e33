"""Regular languages as a test bed: words, their codes, and membership learned in context.

Words are rows of symbol numbers, padded at the end with the number of symbols: `ba` over the alphabet `abc` at width 4
is 1 0 3 3. Labels are +1 for members and −1 for the rest.
"""
