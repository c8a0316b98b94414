"""The plan language: skill sets, grammar, parser, segmenter. Pure."""
