"""How long steps, segments, plans and skills take: one place for what is learned. Pure."""
