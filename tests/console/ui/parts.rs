//! The small rules of single parts: what is dropped, where things stand, what numbers look like.

use std::collections::BTreeSet;

use mnemoscope::ui::{
    Align, Breadcrumbs, Depth, Extent, Footer, Glyphs, JsonView, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole,
    TabLabel, TableBody, TableColumn, TableRow, TableView, Tabs, TextLine, Theme, Total, Width, chart, figures,
    key_values, keyvalue::NamedValue,
};
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::json;
use unicode_width::UnicodeWidthChar;

use super::screen::{draw, text_of, whole_text_of};

fn look() -> Look {
    Look::new(Theme::dark(), Glyphs::unicode())
}

#[test]
fn glyphs_are_one_column_wide_and_have_an_ascii_twin() {
    for (name, unicode, ascii) in Glyphs::twins() {
        assert_eq!(unicode.get().width(), Some(1), "{name}");
        assert!(ascii.get().is_ascii_graphic(), "{name}");
    }
    let (unicode, ascii) = (Glyphs::unicode(), Glyphs::ascii());
    let all = |glyphs: &'static Glyphs| [&glyphs.rising[..], &glyphs.filling, &glyphs.shades, &glyphs.fills].concat();
    assert!(all(unicode).iter().all(|glyph| glyph.get().width() == Some(1)));
    assert!(all(ascii).iter().all(|glyph| glyph.get().is_ascii()));
    assert!((0..=255).all(|bits| ascii.dots(bits).get().is_ascii()));
    assert_eq!(Glyphs::unicode().dots(0b0000_1111).get(), '⡇');
    assert_eq!(Glyphs::unicode().dots(0b1000_0001).get(), '⢁');
}

#[test]
fn numbers_are_written_for_people() {
    let counts = [0, 999, 1_000, 12_400, 1_234_567].map(|value| figures::count(value).to_string());
    assert_eq!(counts, ["0", "999", "1,000", "12,400", "1,234,567"]);
    let short = [0, 999, 1_000, 12_449, 99_960, 999_499, 999_600, 3_100_000, u64::MAX];
    let short = short.map(|value| figures::short_count(value).to_string());
    assert_eq!(short, ["0", "999", "1.0k", "12.4k", "100k", "999k", "1.0M", "3.1M", "18.4E"]);
    assert_eq!(figures::bytes(812).as_str(), "812 B");
    assert_eq!(figures::bytes(1_400_000).as_str(), "1.4 MB");
    let durations = [0.0, 0.34, 42.4, 200.0, 3_600.0, 187_200.0, 34_992_000.0, -90.0, f64::NAN];
    let durations = durations.map(|seconds| figures::duration(seconds).to_string());
    assert_eq!(durations, ["0ms", "340ms", "42s", "3m 20s", "1h", "2d 4h", "1y 40d", "-1m 30s", "?"]);
}

fn columns() -> Vec<TableColumn> {
    vec![
        TableColumn::new("id", Width::Fixed(4)),
        TableColumn::new("title", Width::Grow { min: 8, weight: 1 }),
        TableColumn::new("agent", Width::Fixed(8)).priority(2),
        TableColumn::new("when", Width::Fixed(6)).priority(1).right(),
    ]
}

fn rows(count: usize) -> Vec<TableRow> {
    let row = |index: usize| TableRow {
        cells: ["id", "a title", "an agent", "when"]
            .map(|text| TextLine::of(format!("{text}{index}"), StyleRole::Text))
            .into(),
        ..TableRow::default()
    };
    (0..count).map(row).collect()
}

fn table<'a>(columns: &'a [TableColumn], rows: &'a [TableRow]) -> TableView<'a> {
    TableView {
        columns,
        body: TableBody::Rows(rows),
        selected: Some(0),
        focused: true,
        marks: false,
        extent: Extent::default(),
    }
}

#[test]
fn columns_drop_out_by_priority_and_the_first_ones_stay() {
    let (columns, rows) = (columns(), rows(3));
    let headings = |width: u16| {
        let text = draw(width, 2, |area, buf| table(&columns, &rows).render(area, buf, &look()));
        let heading = text.lines().next().unwrap_or_default().to_owned();
        heading.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(headings(60), ["id", "title", "agent", "when"]);
    assert_eq!(headings(30), ["id", "title", "when"]);
    assert_eq!(headings(20), ["id", "title"]);
    assert_eq!(headings(12), ["id", "t…"]);
}

#[test]
fn a_number_takes_the_room_it_needs() {
    let columns = [
        TableColumn::new("rows", Width::Fixed(4)).right(),
        TableColumn::new("name", Width::Grow { min: 4, weight: 1 }),
    ];
    let cells = vec![TextLine::of("1,000,000+", StyleRole::Number), TextLine::of("a name", StyleRole::Text)];
    let rows = [TableRow { cells, ..TableRow::default() }];
    let text = draw(24, 2, |area, buf| table(&columns, &rows).render(area, buf, &look()));
    assert!(text.contains("1,000,000+  a name"), "{text}");
    let exact = [TableColumn::new("rows", Width::Exact(4)).right(), columns[1].clone()];
    let text = draw(24, 2, |area, buf| table(&exact, &rows).render(area, buf, &look()));
    assert!(text.contains("1,0…  a name"), "{text}");
    assert_eq!(figures::column(981_182, 6).as_str(), "981,182");
    assert_eq!(figures::column(12, 6).as_str(), "    12");
}

#[test]
fn an_empty_cell_says_so_where_rows_are_told_in_lines() {
    let columns = columns();
    let mut rows = rows(1);
    (rows[0].cells[1], rows[0].cells[2]) = (TextLine::default(), TextLine::of("·", StyleRole::Muted));
    let told = |spoken| {
        let look = Look { spoken, ..look() };
        let text = draw(60, 2, |area, buf| table(&columns, &rows).render(area, buf, &look));
        let row = text.lines().nth(1).unwrap_or_default().to_owned();
        row.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(true), ["id0", "none", "none", "when0"]);
    assert_eq!(told(false), ["id0", "·", "when0"]);
}

#[test]
fn a_click_finds_its_row_and_its_heading() {
    let (columns, rows) = (columns(), rows(3));
    let (table, area) = (table(&columns, &rows), Rect::new(5, 2, 60, 10));
    assert_eq!(table.row_at(area, 9, 2), None);
    assert_eq!(table.row_at(area, 9, 3), Some(0));
    assert_eq!(table.row_at(area, 9, 5), Some(2));
    assert_eq!(table.row_at(area, 9, 6), None);
    assert_eq!(table.row_at(area, 4, 3), None);
    assert_eq!(table.column_at(area, 8, 2), Some(0));
    assert_eq!(table.column_at(area, 14, 2), Some(1));
    assert_eq!(table.column_at(area, 14, 3), None);
    assert_eq!(TableView::capacity(area), 9);
}

#[test]
fn a_position_says_what_is_known() {
    let look = look();
    let label = |first, total, below| Extent { first, total, above: false, below }.label(50, &look).to_string();
    assert_eq!(label(Some(50), Total::About(12_400), true), "51–100 of ~12,400");
    assert_eq!(label(Some(0), Total::Exact(50), false), "1–50 of 50");
    assert_eq!(label(Some(0), Total::Unknown, true), "1–50 +");
    assert_eq!(label(None, Total::Unknown, false), "50");
}

#[test]
fn a_scrollbar_touches_an_end_only_at_that_end() {
    let (columns, rows) = (columns(), rows(9));
    let thumb = |first: u64| {
        let extent = Extent { first: Some(first), total: Total::Exact(1_000), above: first > 0, below: first < 991 };
        let text = draw(40, 10, |area, buf| TableView { extent, ..table(&columns, &rows) }.render(area, buf, &look()));
        text.lines().skip(1).position(|line| line.ends_with('┃')).expect("a thumb")
    };
    assert_eq!([thumb(0), thumb(1), thumb(500), thumb(990), thumb(991)], [0, 1, 5, 7, 8]);
}

#[test]
fn a_stale_row_and_a_hit_are_styled() {
    let columns = columns();
    let mut rows = rows(2);
    rows[1].stale = true;
    rows[0].cells[1] = TextLine::of("a title", StyleRole::Text).with_hits("TITLE");
    let mut buf = Buffer::empty(Rect::new(0, 0, 60, 3));
    TableView { selected: None, ..table(&columns, &rows) }.render(buf.area, &mut buf, &look());
    let theme = Theme::dark();
    assert_eq!(buf[(3, 2)].style().fg, theme.style(StyleRole::Stale).fg);
    let hit: String = buf.content[60..120]
        .iter()
        .filter(|cell| cell.fg == theme.style(StyleRole::Hit).fg.expect("a colour"))
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(hit, "title");
}

#[test]
fn hints_that_do_not_fit_are_dropped_whole_and_help_stays() {
    let footer = Footer {
        hints: vec![KeyHint::new("Enter", "open"), KeyHint::new("/", "filter"), KeyHint::new("s", "sort")],
        always: vec![KeyHint::new("?", "help")],
    };
    let line = |width| draw(width, 1, |area, buf| footer.render(area, buf, &look())).trim().to_owned();
    assert_eq!(line(60).split_whitespace().collect::<Vec<_>>().join(" "), "Enter open / filter s sort ? help");
    assert_eq!(line(24).split_whitespace().collect::<Vec<_>>().join(" "), "Enter open ? help");
    assert_eq!(line(8), "? help");
}

#[test]
fn outer_crumbs_go_first_and_badges_stay() {
    let crumbs = Breadcrumbs {
        crumbs: ["atom.db", "Episodes", "Invoice dispute"].map(SafeText::from).into(),
        badges: vec![mnemoscope::ui::Badge::new("READ-ONLY", StyleRole::ReadOnly)],
    };
    let line = |width| draw(width, 1, |area, buf| crumbs.render(area, buf, &look())).trim().to_owned();
    assert_eq!(line(60).split("  ").next(), Some("atom.db › Episodes › Invoice dispute"));
    assert_eq!(line(36), "… › Invoice dispute     READ-ONLY");
    assert_eq!(line(24), "… › Invoi…  READ-ONLY");
}

#[test]
fn the_active_tab_is_always_whole() {
    let tab = |title: &str| TabLabel { title: title.into(), ..TabLabel::default() };
    let tabs: Vec<TabLabel> = ["Overview", "Chain", "Segments", "Canvas", "Feedback"].map(tab).into();
    for active in 0..5 {
        let line = draw(24, 1, |area, buf| Tabs { tabs: tabs.clone(), active }.render(area, buf, &look()));
        assert!(line.contains(tabs[active].title.as_str()), "{line}");
        assert_eq!(line.starts_with('←'), active > 1, "{line}");
    }
}

#[test]
fn a_modal_takes_the_whole_of_a_small_screen() {
    let modal = Modal { pane: PaneFrame::new("Sure?"), width: 50, height: 10 };
    let small = Rect::new(0, 0, 40, 12);
    assert_eq!(modal.area(small), small);
    assert_eq!(modal.area(Rect::new(0, 0, 100, 30)), Rect::new(25, 10, 50, 10));
    assert_eq!(modal.area(Rect::new(0, 0, 80, 11)), Rect::new(0, 0, 80, 11));
}

#[test]
fn values_are_aligned_and_wrapped() {
    let pairs = [
        NamedValue::new("id", "7"),
        NamedValue::new("summary", "one two three four five"),
        NamedValue::new("parent", ""),
    ];
    let lines = |width| key_values(&pairs, width, &look()).iter().map(text_of).collect::<Vec<_>>();
    assert_eq!(lines(24), ["id       7", "summary  one two three", "         four five", "parent   —"]);
    assert_eq!(lines(12)[..3], ["id", "  7", "summary"]);
}

#[test]
fn json_folds_by_depth_and_by_hand() {
    let value = json!({"a": {"b/c": [1, {"d": null}]}, "t": "two\nlines", "e": []});
    let lines = |open_depth, toggled: &[&str]| {
        let toggled: BTreeSet<String> = toggled.iter().map(|&pointer| pointer.to_owned()).collect();
        let view = JsonView { value: &value, open_depth, toggled: &toggled, width: 40, exact: true };
        let lines = view.lines(0, 99, &look());
        assert_eq!(view.count(&look()), lines.len());
        lines
    };
    let text = |lines: Vec<mnemoscope::ui::JsonLine>| lines.iter().map(|line| text_of(&line.line)).collect::<Vec<_>>();
    assert_eq!(text(lines(0, &[])), ["▸ {3}"]);
    assert_eq!(text(lines(1, &[])), ["▾ {3}", "  ▸ a  {1}", "  ▸ t  two↵lines 9 B", "    e  []"]);
    assert_eq!(
        text(lines(1, &["/a", "/a/b~1c", "/t"])),
        [
            "▾ {3}", "  ▾ a  {1}", "    ▾ b/c  [2]", "        0  1", "      ▸ 1  {1}", "  ▾ t  9 B", "      two",
            "      lines", "    e  []"
        ]
    );
    assert_eq!(lines(9, &[])[5].pointer, "/a/b~1c/1/d");
    let view = JsonView { value: &value, open_depth: 9, toggled: &BTreeSet::new(), width: 40, exact: true };
    let (all, window) = (view.lines(0, 99, &look()), view.lines(2, 3, &look()));
    assert_eq!(window, all[2..5]);
}

#[test]
fn any_value_shows_and_only_the_whole_fills_a_meter() {
    let bar = |value| text_of(&chart::meter(value, 10, StyleRole::Good, &look()));
    assert_eq!(bar(0.0), "──────────");
    assert_eq!(bar(0.001), "━─────────");
    assert_eq!(bar(0.999), "━━━━━━━━━─");
    assert_eq!(bar(1.0), "━━━━━━━━━━");
    assert_eq!(bar(f64::NAN), "──────────");
    let around = |value| text_of(&chart::diverging(value, 9, &look()));
    assert_eq!([around(-1.0), around(0.0), around(0.5)], ["━━━━│────", "────│────", "────│━━──"]);
    let done = |ratio| text_of(&chart::Gauge { ratio, ..Default::default() }.line(14, &look()));
    assert!(done(Some(0.9999)).ends_with(" 99%") && done(Some(1.0)).ends_with("100%") && done(None).ends_with('%'));
}

#[test]
fn sums_are_on_one_scale_with_negative_parts_left_of_zero() {
    let bar = |parts: &[f64]| chart::StackedBar { parts: parts.to_vec(), ..Default::default() };
    let bars = [bar(&[4.0, 4.0]), bar(&[2.0, -2.0])];
    let mono = Look::new(Theme::dark().at(Depth::Mono), Glyphs::ascii());
    let lines = chart::StackedBars { bars: &bars, legend: &[], selected: None }.lines(10, &mono);
    assert_eq!(lines.iter().map(whole_text_of).collect::<Vec<_>>(), ["  ####====", "==##      "]);
}

proptest! {
    #[test]
    fn a_time_line_never_goes_backwards(
        spans in proptest::collection::vec((0.0f64..1e6, 0.0f64..1e4), 1..20),
        width in 1usize..120,
    ) {
        let spans: Vec<(f64, f64)> = spans.into_iter().map(|(from, length)| (from, from + length)).collect();
        let scale = chart::Scale::new(&spans, width);
        let mut times: Vec<f64> = spans.iter().flat_map(|span| [span.0, span.1]).collect();
        times.sort_by(f64::total_cmp);
        let columns: Vec<usize> = times.iter().map(|time| scale.column(*time)).collect();
        prop_assert!(columns.is_sorted(), "{columns:?}");
        prop_assert!(columns.iter().all(|column| *column < width), "{columns:?} of {width}");
        prop_assert_eq!(columns[0], 0);
    }

    #[test]
    fn a_line_fits_its_place_and_says_when_it_was_cut(parts in proptest::collection::vec("[a-z ]{0,6}", 0..6), width in 0u16..30) {
        let mut line = TextLine::default();
        for part in &parts {
            line.push(part.as_str(), StyleRole::Text);
        }
        let mut buf = Buffer::empty(Rect::new(0, 0, 40, 1));
        let used = line.render(Rect::new(3, 0, width, 1), &mut buf, &look());
        prop_assert_eq!(usize::from(used), line.width().min(usize::from(width)));
        let shown: String = buf.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        prop_assert_eq!(shown.contains('…'), line.width() > usize::from(width) && width > 0);
    }
}

#[test]
fn a_field_is_filled_on_the_side_it_should() {
    assert_eq!(SafeText::new("7").pad(3, Align::Right).as_str(), "  7");
}
