"""Linear self-attention that is gradient descent: constructions, closed forms, training, comparisons.

Conventions of the whole lab: demonstrations are rows, x [demo, dx] and y [demo, dy]; losses carry the factor ½;
gradients are means over demonstrations, so a rate η here is von Oswald's η and his printed "best lr" is η / N.
"""
