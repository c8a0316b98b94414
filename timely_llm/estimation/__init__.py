"""How long engine steps, segments, plans and skills take: models and what is learned. Pure."""
