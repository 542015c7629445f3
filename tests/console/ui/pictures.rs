//! Everything that is drawn, as text at three sizes, in Unicode and ASCII; and that nothing breaks at any size.

use std::collections::BTreeSet;

use mnemoscope::ui::{
    Badge, Breadcrumbs, Card, CardTone, Depth, Extent, Footer, Glyphs, HintKind, JsonView, KeyHint, LineWindow, Look,
    Modal, PaneFrame, SafeText, Section, SortMark, StyleRole, TabLabel, TableBody, TableColumn, TableRow, TableView,
    Tabs, TextLine, Theme, ToastLine, Total, Width,
    chart::{
        CalendarHeat, ChartLane, DivergingBar, DivergingBars, Gauge, Histogram, LaneChart, LaneMark, LineChart,
        LinePoint, StackedBar, StackedBars, Timeline, TimelineRow, bucket_line, diverging, meter, sparkline,
    },
    figures, key_values,
    keyvalue::NamedValue,
};
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::json;

use super::screen::{draw, styles};

const HOSTILE: &str = "Reset \u{202e}gnp.exe\u{1b}[31m Zalgo\u{301}\u{301}\u{301}\u{301} 日本語の長い題名 \u{e0041}";

type Picture = fn(Rect, &mut Buffer, &Look);

const PICTURES: [(&str, Picture); 9] = [
    ("chrome", chrome),
    ("table", table),
    ("table_empty", table_empty),
    ("detail", detail),
    ("utility", utility),
    ("bars", bars),
    ("stacks", stacks),
    ("heat", heat),
    ("chain", chain),
];

fn unicode() -> Look {
    Look::new(Theme::dark(), Glyphs::unicode())
}

fn ascii() -> Look {
    Look::new(Theme::dark().at(Depth::Mono), Glyphs::ascii())
}

fn chrome(area: Rect, buf: &mut Buffer, look: &Look) {
    let crumbs = Breadcrumbs {
        crumbs: ["atom.db", "Episodes", HOSTILE].map(SafeText::from).into(),
        badges: vec![Badge::new("PRODUCTION", StyleRole::Production), Badge::new("READ-ONLY", StyleRole::ReadOnly)],
    };
    crumbs.render(area, buf, look);
    let tab = |title: &str, count, off| TabLabel { title: title.into(), count, off };
    let tabs = vec![tab("Overview", None, false), tab("Chain", Some(4), false), tab("Memories", Some(0), true)];
    Tabs { tabs, active: 1 }.render(mnemoscope::ui::look::below(area, 1), buf, look);
    let modal = Modal { pane: PaneFrame::new("Purge user-7f3a"), width: 44, height: 6 };
    let middle = Rect { height: area.height.saturating_sub(4), ..mnemoscope::ui::look::below(area, 2) };
    let inner = modal.render(middle, buf, look);
    let hints = [KeyHint::new("Esc", "cancel"), KeyHint { kind: HintKind::Danger, ..KeyHint::new("P", "purge") }];
    Card { hints: hints.into(), ..Card::new(CardTone::Warn, "This cannot be undone").line(HOSTILE) }
        .render(inner, buf, look);
    let toast = ToastLine { text: "copied 3 ids".into(), tone: CardTone::Good, hint: Some(KeyHint::new("u", "undo")) };
    toast.render(Rect { height: area.height.saturating_sub(1), ..area }, buf, look);
    let off = KeyHint { kind: HintKind::Off, ..KeyHint::new("e", "edit") };
    Footer { hints: vec![KeyHint::new("Enter", "open"), off], always: vec![KeyHint::new("?", "help")] }.render(
        mnemoscope::ui::look::below(area, area.height.saturating_sub(1)),
        buf,
        look,
    );
}

fn columns() -> Vec<TableColumn> {
    vec![
        TableColumn::new("when", Width::Fixed(10)).sorted(Some(SortMark::Descending)),
        TableColumn::new("title", Width::Grow { min: 8, weight: 1 }),
        TableColumn::new("outcome", Width::Fixed(9)).priority(1),
        TableColumn::new("utility", Width::Fixed(13)).priority(2),
        TableColumn::new("cases", Width::Fixed(6)).priority(3).right(),
    ]
}

fn table(area: Rect, buf: &mut Buffer, look: &Look) {
    let g = look.glyphs;
    let row = |index: usize| {
        let outcome = match index % 3 {
            0 => TextLine::default().with_glyph(g.check, StyleRole::Good).with(" success", StyleRole::Good),
            1 => TextLine::default().with_glyph(g.cross, StyleRole::Bad).with(" failure", StyleRole::Bad),
            _ => TextLine::default().with_glyph(g.half, StyleRole::Warn).with(" partial", StyleRole::Warn),
        };
        let utility = index as f64 / 9.0;
        let mut bar = TextLine::of(format!("{utility:.2} "), StyleRole::Text);
        bar.append(meter(utility, 8, StyleRole::Series1, look));
        let title = if index == 2 { HOSTILE } else { "Invoice dispute with ACME" };
        TableRow {
            cells: vec![
                TextLine::of(format!("2026-02-{:02}", 28 - index), StyleRole::Muted),
                TextLine::of(title, StyleRole::Text).with_hits("disp"),
                outcome,
                bar,
                TextLine::of(figures::count(index as u64 * 611), StyleRole::Number),
            ],
            marked: index == 1,
            stale: index == 4,
        }
    };
    let rows: Vec<TableRow> = (0..10).map(row).collect();
    let extent = Extent { first: Some(50), total: Total::About(12_400), above: true, below: true };
    let foot = TextLine::of(extent.label(TableView::capacity(PaneFrame::inner(area)).min(10), look), StyleRole::Muted);
    let inner = PaneFrame { foot, focused: true, ..PaneFrame::new("Episodes") }.render(area, buf, look);
    let columns = columns();
    TableView {
        columns: &columns,
        body: TableBody::Rows(&rows),
        selected: Some(1),
        focused: true,
        marks: true,
        extent,
    }
    .render(inner, buf, look);
}

fn table_empty(area: Rect, buf: &mut Buffer, look: &Look) {
    let columns = columns();
    let card = Card::new(CardTone::Bad, "The database does not answer")
        .line("connection refused (os error 111): postgres://127.0.0.1:5432/agents")
        .hint(KeyHint::new("r", "try again"));
    let table = TableView {
        columns: &columns,
        body: TableBody::Card(&card),
        selected: None,
        focused: false,
        marks: false,
        extent: Extent::default(),
    };
    table.render(area, buf, look);
}

fn detail(area: Rect, buf: &mut Buffer, look: &Look) {
    let width = usize::from(area.width.saturating_sub(2));
    let mut lines = key_values(
        &[
            NamedValue::line("user", TextLine::of("user-7f3a", StyleRole::Masked)),
            NamedValue::new("summary", HOSTILE),
            NamedValue::new("parent", ""),
        ],
        width,
        look,
    );
    let note = TextLine::of("0.50 to 0.78", StyleRole::Muted);
    lines.push(Section { count: Some(1_204), note, ..Section::new("Utility") }.line(width, look));
    let values: Vec<Option<f64>> = (0..16).map(|index| (index != 5).then_some(f64::from(index) / 15.0)).collect();
    lines.push(sparkline(&values, 1.0, 16, StyleRole::Series1, look));
    let value = json!({"ok": true, "n": 1.5, "steps": ["plan", {"tool": HOSTILE}]});
    let view = JsonView { value: &value, open_depth: 2, toggled: &BTreeSet::new(), width, exact: true };
    lines.extend(view.lines(0, 20, look).into_iter().map(|line| line.line));
    LineWindow::scrolled(&lines, 1).render(area, buf, look);
}

fn utility(area: Rect, buf: &mut Buffer, look: &Look) {
    let g = look.glyphs;
    let mark = |value: Option<f64>, mark| LinePoint { value, mark: Some(mark) };
    let points = [
        mark(Some(0.5), (g.ring, StyleRole::Muted)),
        mark(Some(0.6), (g.check, StyleRole::Good)),
        mark(Some(0.95), (g.check, StyleRole::Good)),
        mark(None, (g.ring, StyleRole::Muted)),
        mark(Some(0.2), (g.cross, StyleRole::Bad)),
        mark(Some(0.4), (g.edit, StyleRole::Warn)),
    ];
    LineChart { ends: ("Jan 3".into(), "Feb 28".into()), selected: Some(2), ..LineChart::new(&points) }
        .render(area, buf, look);
}

fn bars(area: Rect, buf: &mut Buffer, look: &Look) {
    let (left, right) =
        (Rect { width: area.width / 2, ..area }, mnemoscope::ui::look::right_of(area, area.width / 2 + 1));
    Histogram::new(&[3, 0, 12, 40, 55, 80, 220, 180, 90, 640]).render(left, buf, look);
    let bar = |label: &str, value, note: &str| DivergingBar { label: label.into(), value, note: note.into() };
    let bars = [bar("billing", Some(0.62), "34"), bar("concierge", Some(-0.35), "12"), bar("night", None, "0")];
    DivergingBars { bars: &bars }.render(right, buf, look);
    let gauge = Gauge { label: "embed".into(), ratio: Some(0.43), note: "3m 20s left".into(), role: StyleRole::Accent };
    gauge.line(usize::from(right.width), look).render(mnemoscope::ui::look::below(right, 4), buf, look);
}

fn stacks(area: Rect, buf: &mut Buffer, look: &Look) {
    let bar = |label: &str, parts: &[f64], total: &str| StackedBar {
        label: label.into(),
        parts: parts.to_vec(),
        total: total.into(),
    };
    let bars = [
        bar("1 invoice dispute", &[0.5, 0.2, 0.1], "0.800"),
        bar("2 duplicate", &[0.4, 0.2, -0.1], "0.500"),
        bar(HOSTILE, &[0.1, f64::NAN, 0.05], "0.150"),
    ];
    let legend = ["similarity", "utility", "recency"].map(SafeText::from);
    let legend: Vec<_> = legend.into_iter().enumerate().map(|(at, name)| (name, StyleRole::series(at))).collect();
    StackedBars { bars: &bars, legend: &legend, selected: Some(1) }.render(area, buf, look);
}

fn heat(area: Rect, buf: &mut Buffer, look: &Look) {
    let days: Vec<u64> = (0..150).map(|day| if day % 7 >= 5 { 0 } else { day * day % 17 }).collect();
    let labels: Vec<(usize, SafeText)> =
        vec![(0, "Jan".into()), (4, "Feb".into()), (8, "Mar".into()), (13, "Apr".into())];
    CalendarHeat { days: &days, unknown: 0, labels: &labels }.render(area, buf, look);
}

fn chain(area: Rect, buf: &mut Buffer, look: &Look) {
    let day = 86_400.0;
    let row = |levels: &[bool], label: &str, from: f64, to: Option<f64>, role| TimelineRow {
        levels: levels.to_vec(),
        label: TextLine::of(label, StyleRole::Text),
        from: Some(from * day),
        to: to.map(|to| to * day),
        role,
    };
    let rows = [
        row(&[], "Invoice dispute", 0.0, Some(0.4), StyleRole::Good),
        row(&[true], "Compare line items", 0.4, Some(0.6), StyleRole::Good),
        row(&[true, false], "Ask the warehouse", 0.5, Some(0.5), StyleRole::Bad),
        row(&[false], HOSTILE, 9.0, Some(9.5), StyleRole::Warn),
        row(&[false, false], "Follow-up", 9.4, None, StyleRole::Info),
    ];
    Timeline { rows: &rows, first: 0, selected: Some(2), tick: &figures::duration }.render(area, buf, look);
}

#[test]
fn pictures_at_three_sizes_in_unicode() {
    for (name, picture) in PICTURES {
        let sizes = [(76, 12), (44, 9), (20, 5)];
        let shown = sizes.map(|(width, height)| draw(width, height, |area, buf| picture(area, buf, &unicode())));
        insta::assert_snapshot!(name, shown.join("----\n"));
    }
}

#[test]
fn pictures_in_ascii_have_nothing_else() {
    for (name, picture) in PICTURES {
        let shown = draw(60, 11, |area, buf| picture(area, buf, &ascii()));
        let foreign = shown.chars().find(|c| !c.is_ascii() && !"日本語の長い題名\u{301}".contains(*c));
        assert_eq!(foreign, None, "{name}:\n{shown}");
        insta::assert_snapshot!(format!("{name}_ascii"), shown);
    }
}

#[test]
fn a_table_in_colour_and_without() {
    for (name, theme) in [
        ("table_styles_dark", Theme::dark()),
        ("table_styles_16", Theme::light().at(Depth::Ansi16)),
        ("table_styles_no_color", Theme::dark().at(Depth::Mono)),
    ] {
        let look = Look::new(theme, Glyphs::unicode());
        insta::assert_snapshot!(name, styles(48, 8, |area, buf| table(area, buf, &look)));
    }
}

#[test]
fn without_colour_no_cell_has_any() {
    let look = Look::new(Theme::light().at(Depth::Mono), Glyphs::unicode());
    for (name, picture) in PICTURES {
        let mut buf = Buffer::empty(Rect::new(0, 0, 76, 20));
        picture(buf.area, &mut buf, &look);
        let coloured = buf
            .content
            .iter()
            .find(|cell| cell.fg != ratatui::style::Color::Reset || cell.bg != ratatui::style::Color::Reset);
        assert_eq!(coloured, None, "{name}");
    }
}

#[test]
fn nothing_dangerous_is_ever_in_a_cell() {
    for (name, picture) in PICTURES {
        for look in [unicode(), ascii()] {
            let mut buf = Buffer::empty(Rect::new(0, 0, 120, 40));
            picture(buf.area, &mut buf, &look);
            let bad = buf.content.iter().find(|cell| {
                cell.symbol().chars().any(|c| {
                    c.is_control() || matches!(c as u32, 0x200b..=0x200f | 0x202a..=0x202e | 0xe0000..=0xe007f)
                })
            });
            assert_eq!(bad, None, "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_breaks_at_any_size_or_place(
        width in 0u16..90, height in 0u16..30, x in 0u16..12, y in 0u16..12, which in 0usize..9, plain in any::<bool>(),
    ) {
        let look = if plain { ascii() } else { unicode() };
        // The area may reach beyond the buffer, as it does while a terminal is being resized.
        let mut buf = Buffer::empty(Rect::new(0, 0, 60, 20));
        let area = Rect::new(x, y, width, height);
        PICTURES[which].1(area, &mut buf, &look);
        let outside = |(index, _): &(usize, &ratatui::buffer::Cell)| {
            let position = buf.pos_of(*index);
            !area.contains(position.into())
        };
        let spilled = buf.content.iter().enumerate().filter(outside).find(|(_, cell)| cell.symbol() != " ");
        prop_assert_eq!(spilled, None, "{} spills out of {}", PICTURES[which].0, area);
    }

    #[test]
    fn charts_take_any_number(values in proptest::collection::vec(any::<f64>(), 0..40), width in 0u16..40, height in 0u16..12) {
        let look = unicode();
        let mut buf = Buffer::empty(Rect::new(0, 0, 40, 12));
        let area = Rect::new(0, 0, width, height);
        let points: Vec<LinePoint> = values.iter().map(|value| LinePoint { value: Some(*value), mark: None }).collect();
        LineChart { selected: Some(3), ..LineChart::new(&points) }.render(area, &mut buf, &look);
        let bars = [StackedBar { parts: values.clone(), ..StackedBar::default() }];
        StackedBars { bars: &bars, legend: &[], selected: None }.render(area, &mut buf, &look);
        let counts: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        Histogram::new(&counts).render(area, &mut buf, &look);
        CalendarHeat { days: &counts, unknown: 0, labels: &[] }.render(area, &mut buf, &look);
        let rows: Vec<TimelineRow> = values.chunks(2).map(|pair| TimelineRow {
            from: pair.first().copied(), to: pair.get(1).copied(), ..TimelineRow::default()
        }).collect();
        Timeline { rows: &rows, first: 1, selected: None, tick: &figures::duration }.render(area, &mut buf, &look);
        let width = usize::from(width);
        let known: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        prop_assert!(sparkline(&known, 1.0, width, StyleRole::Text, &look).width() <= width);
        prop_assert_eq!(bucket_line(&counts, 2, StyleRole::Text, &look).width(), counts.len() * 2);
        for value in values {
            prop_assert_eq!(meter(value, width, StyleRole::Text, &look).width(), width);
            prop_assert!(diverging(value, width, &look).width() <= width);
        }
    }
}

#[test]
fn words_in_a_lane_have_the_colour_of_text_and_marks_of_missing_values_can_be_seen() {
    let look = unicode();
    let mark = LaneMark { at: 0.0, glyph: look.glyphs.dot, role: StyleRole::Warn, label: "update".into(), moment: 0 };
    let lane = ChartLane { label: "canvas".into(), marks: vec![mark], spans: vec![(0.0, 100.0)], level: None };
    let tick = |_: f64| ("11-27".into(), "04:20".into());
    let chart = LaneChart {
        lanes: &[lane],
        moments: &[0.0, 100.0],
        is_time: true,
        selected: None,
        tick: &tick,
        pause: &|_| SafeText::default(),
    };
    let mut buf = Buffer::empty(Rect::new(0, 0, 60, 3));
    chart.render(buf.area, &mut buf, &look);
    let line: Vec<&str> = (0..60).map(|x| buf[(x, 1)].symbol()).collect();
    let at = (0..54).find(|at| line[*at..].concat().starts_with("update")).expect("the word");
    let word: BTreeSet<_> = (at..at + 6).map(|x| format!("{:?}", buf[(x as u16, 1)].fg)).collect();
    assert_eq!(word, BTreeSet::from(["Reset".to_owned()]), "not that of the span below it");
    let holes = sparkline(&[None, Some(0.5), None], 1.0, 3, StyleRole::Accent, &look);
    holes.render(Rect { height: 1, ..buf.area }, &mut buf, &look);
    assert_eq!(buf[(0, 0)].fg, look.theme.style(StyleRole::Muted).fg.expect("a colour"));
}

#[test]
fn without_colours_a_bar_shows_on_the_selection_and_brackets_have_a_blank_beside_them() {
    let look = Look::new(Theme::dark().at(Depth::Mono), Glyphs::unicode());
    let mut buf = Buffer::empty(Rect::new(0, 0, 40, 1));
    TextLine::default().with_glyph(look.glyphs.fills[0], StyleRole::Series1).render(buf.area, &mut buf, &look);
    look.select(buf.area, &mut buf, StyleRole::Selection);
    assert!(buf[(0, 0)].modifier.contains(ratatui::style::Modifier::REVERSED), "else it is light on light");
    for (width, shown) in [(40, "[1 home]  2 episodes"), (19, " 1 home 2 episodes")] {
        let titles = ["1 home", "2 episodes"];
        let label = |title: &str| TabLabel { title: title.into(), ..TabLabel::default() };
        let tabs = Tabs { tabs: titles.map(label).to_vec(), active: 0 };
        let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
        tabs.render(buf.area, &mut buf, &look);
        let line: String = (0..width).map(|x| buf[(x, 0)].symbol()).collect();
        assert_eq!(line.trim_end(), shown);
    }
}
