from __future__ import annotations

import inspect
import io
import math
import pkgutil
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from lab.errors import InputError
from lab.show import figures
from lab.show.style import GREY, LIGHT, THEMES, look

NAMES = sorted(figures.__all__)


def draw(name, frames, **options):
    return getattr(figures, name)(**frames, **options)


def artists(figure, label):
    return [
        artist
        for ax in figure.axes
        for artist in (*ax.collections, *ax.lines, *ax.patches)
        if artist.get_label() == label
    ]


def offsets(figure, label="_points"):
    return np.concatenate([np.asarray(cloud.get_offsets()) for cloud in artists(figure, label)])


def segments(figure, label="_interval"):
    return np.array([line for part in artists(figure, label) for line in part.get_segments()])


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text)]


def test_the_table_of_contents_is_complete():
    modules = {module.name for module in pkgutil.iter_modules(figures.__path__)}
    assert modules == set(figures.__all__)
    assert all(f"``{name}``" in figures.__doc__ for name in modules)


def test_every_figure_has_made_up_frames(frames_of):
    for name in NAMES:
        wanted = inspect.signature(getattr(figures, name)).parameters
        assert set(frames_of(name)) <= set(wanted)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_draws_in_both_themes(name, theme, frames_of):
    figure = draw(name, frames_of(name), theme=theme)
    assert isinstance(figure, Figure)
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    assert to_hex(figure.get_facecolor()) == theme.paper
    assert {to_hex(ax.xaxis.label.get_color()) for ax in figure.axes} == {theme.ink}
    ticks = [tick.label1 for ax in figure.axes for tick in ax.xaxis.get_major_ticks()]
    assert {to_hex(tick.get_color()) for tick in ticks} <= {theme.ink}


@pytest.mark.parametrize("name", NAMES)
def test_the_question_is_the_title_and_can_be_changed(name, frames_of):
    figure = draw(name, frames_of(name), question="Is this the question?")
    assert figure._suptitle.get_text() == "Is this the question?"
    default = inspect.signature(getattr(figures, name)).parameters["question"].default
    assert default.endswith("?")


@pytest.mark.parametrize("name", NAMES)
def test_case_30_an_empty_frame_is_drawn_as_no_data_with_its_reason(name, frames_of):
    figure = draw(name, {key: pd.DataFrame() for key in frames_of(name)})
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    assert any(text.startswith("no data: ") for text in texts(figure))


@pytest.mark.parametrize("name", NAMES)
def test_case_30_only_missing_values_do_not_crash_a_figure(name, frames_of):
    frames = {key: blanked(frame) for key, frame in frames_of(name).items()}
    figure = draw(name, frames)
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    if name != "ledger_overview":  # a claim without a number still has a verdict
        assert any(text.startswith("no data: ") for text in texts(figure))


KEYS = {"run", "width", "depth", "streams", "n", "draft_length", "match_length", "ordinal", "best"}
KEYS |= {"distinct_between", "pool", "cache", "on_front", "ridge", "elapsed_s"}


def blanked(frame):
    blank = frame.copy()
    for column in frame.columns:
        if column not in KEYS and pd.api.types.is_numeric_dtype(frame[column]):
            blank[column] = math.nan
    return blank


@pytest.mark.parametrize("name", NAMES)
def test_case_30_one_run_only_gives_no_error_bar(name, frames_of):
    frames = {
        key: frame.assign(n=1) if "n" in frame.columns else frame
        for key, frame in frames_of(name).items()
    }
    figure = draw(name, frames)
    figure.savefig(io.BytesIO(), format="png", dpi=50)
    if name not in {"predicted_vs_measured", "pareto", "lever_ranking"}:
        assert not artists(figure, "_interval")
        assert not artists(figure, "_band")


@pytest.mark.parametrize("name", NAMES)
def test_a_lacking_column_is_one_clear_error(name, frames_of):
    frames = frames_of(name)
    first = next(iter(frames))
    lost = "setting" if name == "pareto" else str(frames[first].columns[0])
    frames[first] = frames[first].drop(columns=lost)
    with pytest.raises(InputError, match=rf"figure {name}.*lacks.*{lost}"):
        draw(name, frames)


@pytest.mark.parametrize("name", NAMES)
def test_case_30_nothing_needs_pyplot_or_a_backend(name, frames_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    draw(name, frames_of(name))._repr_png_()


def test_strange_names_are_drawn_as_they_are(frames_of):
    frames = frames_of("speedup_by_arm")
    strange = "model $5 & $6 \x00\x1b[31m <b> 模型 🦙 {x}"
    frames = {key: frame.replace("ngram-cache", strange) for key, frame in frames.items()}
    figure = draw("speedup_by_arm", frames)
    for form in ("png", "svg"):
        figure.savefig(io.BytesIO(), format=form)
    assert any("model $5 & $6 [31m <b>" in text for text in texts(figure))


def test_speedup_by_arm_shows_the_values_it_was_given(frames_of):
    frames = frames_of("speedup_by_arm")
    frame, points = frames["frame"], frames["points"]
    figure = draw("speedup_by_arm", frames, equivalence=(0.98, 1.02))
    assert figure.axes[0].get_xscale() == "log"
    assert sorted(offsets(figure)[:, 0]) == pytest.approx(sorted(points["speedup"]))
    assert sorted(offsets(figure, "_estimate")[:, 0]) == pytest.approx(sorted(frame["speedup"]))
    ends = segments(figure)[:, :, 0]
    wanted = frame.sort_values("low")[["low", "high"]]
    np.testing.assert_allclose(ends[np.argsort(ends[:, 0])], wanted)
    shade = artists(figure, "_equivalence")[0].get_extents()
    to_data = figure.axes[0].transData.inverted()
    assert to_data.transform(shade)[:, 0] == pytest.approx([0.98, 1.02])


def test_the_second_baseline_comes_first_in_grey(frames_of):
    figure = draw("speedup_by_arm", frames_of("speedup_by_arm"))
    ax = figure.axes[0]
    assert ax.get_yticklabels()[0].get_text() == "baseline-again"
    first = artists(figure, "_estimate")[0]
    assert to_hex(first.get_edgecolor()[0]) == GREY
    assert ax.yaxis_inverted()


def test_an_arm_whose_requests_all_failed_keeps_its_row(frames_of):
    frames = frames_of("speedup_by_arm")
    failed = frames["frame"]["arm"] == "ngram-cache"
    frames["frame"].loc[failed, ["speedup", "low", "high"]] = math.nan
    figure = draw("speedup_by_arm", frames)
    assert "no data: every request failed" in texts(figure)
    assert len(artists(figure, "_estimate")) == len(frames["frame"]) - 1


def test_an_arm_looks_the_same_in_every_figure(frames_of):
    arm = "ngram-simple"
    for name in ("speedup_by_arm", "climb", "speedup_by_state", "predicted_vs_measured"):
        clouds = artists(draw(name, frames_of(name)), "_points")
        colors = {to_hex(cloud.get_facecolor()[0]) for cloud in clouds}
        assert look(arm).color in colors


def test_climb_shows_points_estimates_bands_and_the_published_curve(frames_of):
    frames = frames_of("climb")
    figure = draw("climb", frames)
    assert {ax.get_yscale() for ax in figure.axes} == {"log"}
    assert len(offsets(figure)) == len(frames["points"])
    assert sorted(offsets(figure, "_estimate")[:, 1]) == pytest.approx(
        sorted(frames["frame"]["speedup"])
    )
    curves = artists(figure, "_published")
    assert len(curves) == len(figure.axes) == len(artists(figure, "_band"))
    np.testing.assert_allclose(curves[0].get_xydata(), frames["reference"][["run", "speedup"]])
    assert all(curve.get_linestyle() == "--" for curve in curves)
    assert any("published" in text for text in texts(figure))


def test_forgetting_has_a_place_for_zero(frames_of):
    figure = draw("forgetting", frames_of("forgetting"))
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()][:3] == ["0", "1", "2"]
    assert {"ngram-cache", "ngram-mod-24-48-64"} <= set(texts(figure))


def test_noise_floor_shows_every_pair_in_time_and_as_a_distribution(frames_of):
    frames = frames_of("noise_floor")
    figure = draw("noise_floor", frames)
    np.testing.assert_allclose(offsets(figure), frames["points"][["ordinal", "speedup"]])
    steps = artists(figure, "_ecdf")[0].get_ydata()
    assert set(frames["points"]["speedup"]) <= set(steps)


def test_what_never_drafted_is_counted_not_drawn_at_zero(frames_of):
    points = frames_of("coverage_acceptance")["points"]
    points.loc[points["arm"] == "ngram-simple", ["acceptance_length"]] = math.nan
    figure = draw("coverage_acceptance", {"points": points})
    drawn = points["acceptance_length"].notna().sum()
    assert len(offsets(figure)) == drawn
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "ngram-simple (7 of 7 never drafted)" in legend


def test_verify_cost_has_both_bounds_switches_and_published_curves(frames_of):
    frames = frames_of("verify_cost")
    figure = draw("verify_cost", frames)
    for ax in figure.axes:
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    models = frames["frame"]["model"].nunique()
    for label in ("_no_gain", "_bound", "_published"):
        assert len(artists(figure, label)) == models
    assert len(artists(figure, "_switch")) == models * len(frames["switches"])
    assert len(artists(figure, "_band")) == models * frames["frame"]["depth"].nunique()


def test_predicted_vs_measured_lies_about_the_identity(frames_of):
    points = frames_of("predicted_vs_measured")["points"]
    figure = draw("predicted_vs_measured", {"points": points})
    plane = figure.axes[0]
    assert plane.get_xlim() == plane.get_ylim()
    line = artists(figure, "_identity")[0].get_xydata()
    np.testing.assert_array_equal(line[:, 0], line[:, 1])
    drawn = {tuple(pair) for pair in offsets(figure)}
    wanted = points[["predicted", "measured"]].itertuples(index=False, name=None)
    assert set(wanted) <= drawn
    assert len(segments(figure)) == 2 * len(points)


def test_a_map_has_each_value_in_its_cell_and_keeps_gaps(frames_of):
    frame = frames_of("break_even_map")["frame"]
    mesh = artists(draw("break_even_map", {"frame": frame}), "_cells")[0]
    cells = mesh.get_array()
    wanted = frame.pivot_table(
        index="acceptance_length", columns="width", values="speedup", dropna=False
    )
    np.testing.assert_allclose(cells.filled(math.nan), wanted.to_numpy())
    low, high = mesh.get_clim()
    assert low * high == pytest.approx(1)


def test_the_best_setting_is_ringed(frames_of):
    figure = draw("replay_map", frames_of("replay_map"))
    assert len(artists(figure, "_best")) == frames_of("replay_map")["frame"]["best"].sum()


def test_contributions_end_at_their_product(frames_of):
    frames = frames_of("attribution")
    figure = draw("attribution", frames)
    ends = offsets(figure, "_end")[:, 0].reshape(-1, 4)[:, -1]
    totals = frames["frame"].groupby("arm", sort=False)["log_contribution"].sum()
    np.testing.assert_allclose(ends, np.exp(totals))


def test_an_unknown_factor_is_not_drawn_as_none(frames_of):
    frames = frames_of("attribution")
    frames["frame"].loc[0, "log_contribution"] = math.nan
    figure = draw("attribution", frames)
    assert "no data: a factor is not known" in texts(figure)
    assert len(artists(figure, "_segment")) == len(frames["frame"]) - 4


def test_roofline_marks_ceilings_and_the_ridge(frames_of):
    frames = frames_of("roofline")
    figure = draw("roofline", frames)
    assert sorted(offsets(figure, "_ceiling")[:, 0]) == sorted(frames["attained"]["ceiling_tok_s"])
    assert artists(figure, "_ridge")[0].get_xdata() == [5.0, 5.0]
    assert "57% of the ceiling" in texts(figure)


def test_a_gap_in_the_clocks_stays_a_gap(frames_of):
    frame = frames_of("clocks")["frame"]
    frame.loc[10, "value"] = math.nan
    figure = draw("clocks", {"frame": frame})
    lines = artists(figure, "_line")
    assert sum(np.isnan(line.get_ydata()).sum() for line in lines) == 1


def test_draft_ladder_rings_the_predicted_best(frames_of):
    frames = frames_of("draft_ladder")
    best = frames["predicted"][frames["predicted"]["best"]]
    figure = draw("draft_ladder", frames)
    np.testing.assert_allclose(offsets(figure, "_best"), best[["draft_length", "speedup"]])


def test_a_lever_is_coloured_by_what_its_interval_says(frames_of):
    frame = frames_of("lever_ranking")["frame"]
    figure = draw("lever_ranking", {"frame": frame})
    gains = [dot for dot in figure.axes[0].collections if dot.get_label() == "_estimate"]
    told = [to_hex(dot.get_facecolor()[0]) for dot in gains]
    for color, (_, row) in zip(told, frame.iterrows(), strict=True):
        undecided = row["low"] <= 1 <= row["high"]
        assert (color == GREY) == undecided


def test_a_lever_without_a_measured_loss_says_why(frames_of):
    frame = frames_of("lever_ranking")["frame"]
    frame.loc[frame["setting"] == "2", "quality_reason"] = None
    written = texts(draw("lever_ranking", {"frame": frame}))
    assert written.count("same arithmetic") == frame["quality_reason"].notna().sum()
    assert written.count("not measured") == 1


def test_pareto_counts_what_it_leaves_out(frames_of):
    frame = frames_of("pareto")["frame"]
    frame.loc[3:4, "kl_divergence"] = math.nan
    assert "2 more: speed or loss not measured" in texts(draw("pareto", {"frame": frame}))


def test_pareto_joins_only_the_front(frames_of):
    frame = frames_of("pareto")["frame"]
    figure = draw("pareto", {"frame": frame})
    front = frame[frame["on_front"]].sort_values("speedup")
    line = artists(figure, "_front")[0]
    np.testing.assert_allclose(line.get_xdata(), front["speedup"])
    assert line.get_drawstyle().startswith("steps")


def test_ledger_puts_each_claim_under_its_verdict(frames_of):
    frame = frames_of("ledger_overview")["frame"]
    figure = draw("ledger_overview", {"frame": frame})
    matrix = figure.axes[0]
    marks = np.concatenate([np.asarray(dot.get_offsets()) for dot in matrix.collections])
    verdicts = ("supported", "refuted", "inconclusive", "not testable here")
    assert marks[:, 0].tolist() == [verdicts.index(verdict) for verdict in frame["verdict"]]
    assert marks[:, 1].tolist() == list(range(len(frame)))


def test_timeline_draws_each_step_once(frames_of):
    frame = frames_of("timeline")["frame"]
    figure = draw("timeline", {"frame": frame})
    assert len(segments(figure, "_steps")) == len(frame)
    assert len(segments(figure, "_accepted")) == (frame["accepted"] > 0).sum()
    assert len(segments(figure, "_rejected")) == (frame["drafted"] > frame["accepted"]).sum()


def test_a_figure_leaves_its_frames_as_they_were(frames_of):
    for name in NAMES:
        frames, untouched = frames_of(name), frames_of(name)
        draw(name, frames, theme=LIGHT)
        for key, frame in frames.items():
            pd.testing.assert_frame_equal(frame, untouched[key])
