"""Profiles as files: written and read back, faults with line and key, other models refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import LATENCY, make_model, write

from timely_llm.bench import profile_file as profile
from timely_llm.bench.profile_file import Loop, ProfileMismatch, read_profile
from timely_llm.estimation.step_time import StepLatency
from timely_llm.validation.reader import FileError


def test_a_profile_is_read_as_an_engine(tmp_path):
    engine = profile.load(write(tmp_path))
    assert engine.name == "mine"
    assert engine.kv_tokens == 2183 * 32
    assert (engine.block_size, engine.prefill_chunk) == (32, 2048)
    for query in [(1, 0, 100), (2, 30, 5000), (0, 500, 0), (7, 0, 0)]:
        assert engine.latency(*query) == pytest.approx(LATENCY(*query), rel=1e-5)
    assert "2026-11-21" in engine.source
    assert "planner" in engine.source


def test_what_was_measured_is_kept_for_people(tmp_path):
    text = write(tmp_path).read_text()
    for words in ("some cpu", "bfloat16", "grammar: tello", "unseen_all", "held_out_ms", "date"):
        assert words in text
    errors = profile.load_profile(tmp_path / "mine.yaml").errors
    assert 0.0 < errors["floor"] < 0.2


def test_no_file_is_written_that_cannot_be_read(tmp_path):
    loaded = profile.load_profile(write(tmp_path))
    engine = loaded.engine
    assert (engine.backend, engine.max_batch, engine.max_model_len) == ("vllm-cpu", 16, 4096)
    assert engine.grammar == "tello"


def test_the_simulated_engine_takes_what_the_planner_s_loop_takes(tmp_path):
    loop = Loop(decode_step=0.0033, mean_over_median=1.1, step=0.0004, goal=0.0012)
    engine = profile.load(write(tmp_path, loop=loop))
    assert (engine.decode_step, engine.submit) == (0.0033, 0.0012)
    for query in [(1, 0, 100), (2, 30, 5000), (0, 500, 0), (7, 0, 0)]:
        assert engine.latency(*query) == pytest.approx(1.1 * LATENCY(*query) + 0.0004, rel=1e-5)
    assert profile.load_profile(tmp_path / "mine.yaml").latency(1) == pytest.approx(LATENCY(1))


def test_a_profile_without_the_planner_s_loop_is_read(tmp_path):
    text = write(tmp_path, loop=Loop(1.0, 2.0, 3.0, 4.0)).read_text()
    begin, end = text.index("planner: {"), text.index("grid:")
    engine = read_profile(text[:begin] + text[end:]).engine_model
    assert engine.latency(2, 0, 50) == pytest.approx(LATENCY(2, 0, 50))
    assert (engine.decode_step, engine.submit) == (pytest.approx(LATENCY(1)), 0.0)


times = st.floats(0.0, 1.0)


@given(
    st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=8),
    st.tuples(times, times, times, times, times, times),
    st.tuples(st.integers(0, 20), st.integers(0, 3000), st.integers(0, 50_000)),
)
def test_any_latency_survives_the_file(tmp_path_factory, decode, terms, query):
    latency = StepLatency(tuple(decode), *terms)
    read = profile.load(write(tmp_path_factory.mktemp("profile"), latency)).latency
    assert read(*query) == pytest.approx(latency(*query), rel=1e-4)


# Other models.


def test_a_profile_of_another_model_is_refused(tmp_path):
    path = write(tmp_path)
    other = make_model(tmp_path / "larger", {"hidden_size": 256})
    with pytest.raises(ProfileMismatch, match=r"mine.yaml is of model 'planner' .*not of 'larger'"):
        profile.load(path, str(other))
    with pytest.raises(ProfileMismatch, match="not of 'org/planner'"):
        profile.load(path, "org/planner")


def test_a_model_trained_anew_or_moved_is_the_same(tmp_path):
    path = write(tmp_path)
    moved = make_model(tmp_path / "elsewhere" / "p2", {"hidden_size": 192})
    (moved / "model.safetensors").write_bytes(b"other weights")
    for model in (tmp_path / "planner", moved):
        assert profile.load(path, str(model)).name == "mine"


def test_models_that_are_no_folders_go_by_name(tmp_path):
    path = write(tmp_path, model="org/model")
    assert profile.load(path, "org/model").name == "mine"
    with pytest.raises(ProfileMismatch, match="is of model 'org/model'"):
        profile.load(path, "org/other")


def test_a_model_whose_config_is_broken_is_named(tmp_path):
    folder = make_model(tmp_path / "broken", {})
    (folder / "config.json").write_text("{")
    with pytest.raises(ProfileMismatch, match="config.json is not JSON"):
        profile.identify(str(folder))


# Bad files.


def broken(tmp_path, old, new):
    text = write(tmp_path).read_text()
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("format: 1", "format: 2", r":1: format: is 2: this version reads 1"),
        ("per_kv_token_us", "per_kv_tokn_us", r"latency: unknown key 'per_kv_tokn_us'; did you"),
        ("per_kv_token_us: 0.05", "per_kv_token_us: -1", r"latency.per_kv_token_us: is -1: must"),
        ("per_kv_token_us: 0.05", "per_kv_token_us: .nan", r"latency.per_kv_token_us: is '.nan'"),
        ("decode_ms: [3.12345, 3.4]", "decode_ms: []", r"latency.decode_ms: has 0 entries"),
        ("decode_ms: [3.12345, 3.4]", "decode_ms: [0, 0]", r"latency.decode_ms: has no time above"),
        ("decode_ms: [3.12345, 3.4]", "decode_ms: [3, a]", r"latency.decode_ms\[1\]: is 'a'"),
        ("block_size: 32", "block_size: 0", r"engine.block_size: is 0: must be 1 to"),
        ("max_batch: 16", "max_batch: 16.5", r"engine.max_batch: is 16.5: must be a whole number"),
        ("machine:", "machines:", r"unknown key 'machines'; did you mean 'machine'\?"),
        ("goal_ms: 0.0", "goal_ms: -1", r"goal_ms"),
        ("name: planner", "nam: planner", r"model: unknown key 'nam'; did you mean 'name'"),
    ],
)
def test_a_fault_is_named_with_its_line_and_key(tmp_path, old, new, words):
    with pytest.raises(FileError, match=r"^file.yaml:\d+: ") as caught:
        read_profile(broken(tmp_path, old, new), "file.yaml")
    assert caught.match(words)


def test_what_is_missing_is_named(tmp_path):
    text = write(tmp_path).read_text()
    with pytest.raises(FileError, match="'grid' is missing"):
        read_profile(text[: text.index("grid:")])
    with pytest.raises(FileError, match="is empty"):
        read_profile("")
    with pytest.raises(OSError, match="none.yaml"):
        profile.load(tmp_path / "none.yaml")


@given(st.text(max_size=200))
def test_any_text_is_a_profile_or_a_clear_error(text):
    with pytest.raises(FileError):
        read_profile(text)
