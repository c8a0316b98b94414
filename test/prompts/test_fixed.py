"""What the requests of a kind share."""

from timely_llm.prompts.fixed import FixedPrompt


def test_requests_have_it_and_what_is_theirs():
    fixed = FixedPrompt("system", (("asked", "answer"),), "root ::= x")
    request = fixed.request("a", 3, "go", 99, priority=1)
    assert (request.id, request.number, request.user, request.max_tokens) == ("a", 3, "go", 99)
    assert (request.system, request.examples) == (fixed.system, fixed.examples)
    assert (request.grammar, request.priority) == ("root ::= x", 1)
    assert request.fixed == "systemaskedanswer"


def test_without_a_grammar_nothing_is_bounded_and_another_one_goes_before():
    assert FixedPrompt("system").request("a", 1, None, 9).grammar is None
    assert FixedPrompt("s", (), "a").request("a", 1, "u", 9, grammar="b").grammar == "b"
