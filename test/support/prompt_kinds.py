"""For tests of prompts: two robot kinds that offer little. No tests here."""

from timely_llm.language.loader import read_skill_set

CRAWLER = read_skill_set(
    """
kind: crawler
description: a crawler with one motor, one eye and a printer
bounds: {max_nesting: 1, max_statements: 4, max_loop: 2}
skills:
  - name: go
    long_name: go
    description: crawl on
    arguments: [{name: length, type: int, unit: mm, minimum: 7, maximum: 9}]
    duration: {constant: 1}
  - name: tag
    long_name: tag
    description: print a label
    arguments: [{name: label, type: str, maximum: 8, pattern: "[A-Z]{1,8}"}]
    duration: {constant: 1}
  - name: see
    long_name: see
    description: whether the object is in view
    arguments: [{name: object, type: str, maximum: 8}]
    returns: bool
    duration: {constant: 0.001}
"""
)
BLIND = read_skill_set(
    """
kind: blind
description: one that can only wait
skills:
  - name: w
    long_name: wait
    description: wait
    arguments: [{name: seconds, type: float, unit: s, minimum: 0.1, maximum: 0.4}]
    duration: {argument: seconds}
"""
)
