"""Space: columns become coordinates, in which distances measure dissimilarity."""
