"""Models of the four papers and the one tap into their units."""
