"""Models of the literature, which no bundle ships."""
