"""Plans that are known before they are written: how a run reads them."""

from dataclasses import replace

import pytest
from sim_cases import GO, SKILLS, task
from sim_parts import tokens_of

from timely_llm.simulation.known_plans import Playback, read


def test_a_playback_says_what_the_segmenter_said():
    plan = read(task(), SKILLS["walker"])
    assert [plan.tokens_to_boundary[i] for i in range(10)] == [3, 2, 1, 0, 4, 3, 2, 1, 0, 0]
    playback = Playback(plan)
    playback.skip(3)
    assert playback.tokens_to_boundary == 0
    (cut,) = playback.feed(")")
    assert (cut.text, cut.calls[0].expected_duration, cut.last) == ("go(2)", 2.0, False)
    assert playback.tokens_to_boundary == 4
    texts = [cut.text for of_token in plan.cuts for cut in of_token]
    assert "".join(texts) == GO == "".join(tokens_of(GO))


def test_an_answer_that_is_cut_off_is_refused():
    with pytest.raises(ValueError, match="task 'broken'.*cut off"):
        read(replace(task("go(1);go("), name="broken"), SKILLS["walker"])
