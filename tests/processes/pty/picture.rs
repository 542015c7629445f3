//! The pictures of the documents are what the program really draws. `REFRESH_README=1 cargo test --test processes picture`
//! makes them again.

use std::fmt::Write as _;
use std::fs;

use unicode_width::UnicodeWidthStr as _;
use vt100::{Cell, Color, Screen};

use super::terminal::{Home, Start};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
const COLUMNS: u16 = 118;
const ROWS: u16 = 34;
/// Width and height of a cell, and of the margin, in pixels.
const CELL: (f64, f64) = (8.4, 17.0);
const MARGIN: f64 = 12.0;
const PAPER: &str = "#16181d";
const INK: &str = "#d5d8de";
/// The sixteen colours that a theme may name by number.
const PALETTE: [&str; 16] = [
    "#2a2e36", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#b8bdc8", "#6b7280", "#f08a92",
    "#b1d89a", "#f2d399", "#84c1f5", "#d799ea", "#7ccbd5", "#ffffff",
];

/// A picture: its file, what it shows, and the keys that lead there, each with a text that is shown then.
struct Picture {
    file: &'static str,
    shows: &'static str,
    steps: &'static [(&'static str, &'static str)],
}

/// Screens that are the same on every day: none says how long ago something was.
const PICTURES: &[Picture] = &[
    Picture {
        file: "console.svg",
        shows: "The console with a list of episodes, and one of them below",
        steps: &[("2", "of 250"), ("jjjj", "row 5 of 250")],
    },
    Picture {
        file: "replay.svg",
        shows: "Episodes of one topic as a time line, with the selected one below",
        steps: &[("2", "of 250"), ("V", "What happened")],
    },
    Picture {
        file: "findings.svg",
        shows: "What is wrong in the memory, by severity, with examples and the command that helps",
        steps: &[("F", "24 kinds, 299 found"), ("g", "row 1 of 24")],
    },
    Picture {
        file: "tables.svg",
        shows: "The tables of the database as they stand, with the rows of one",
        steps: &[("B", "this row"), ("jjjjjjj", "canvas events a week")],
    },
    Picture {
        file: "erase.svg",
        shows: "The first step of an erasure: all that a person is known by",
        steps: &[("8", "row 1 of"), ("cp", "known as")],
    },
];

#[test]
fn the_pictures_in_the_documents_are_current() {
    let home = Home::new();
    home.demo();
    for Picture { file, shows, steps } in PICTURES {
        let start =
            Start::new(&home, &["console", "demo.db", "--theme", "dark"]).with("TZ", "UTC").sized(COLUMNS, ROWS);
        let mut terminal = start.run();
        terminal.shows("newest episodes");
        for (keys, text) in *steps {
            terminal.press(keys);
            terminal.shows(text);
        }
        let path = format!("{FOLDER}/{file}");
        if std::env::var_os("REFRESH_README").is_some() {
            (0..20).for_each(|_| terminal.settle());
            terminal.with_screen(|screen| fs::write(&path, svg(screen, shows)).unwrap());
        }
        let kept = fs::read_to_string(&path).unwrap();
        let what = format!("the picture docs/{file} (REFRESH_README=1 makes it again)");
        terminal.screen_is(&what, |screen| svg(screen, shows) == kept);
        terminal.press("\u{3}");
        terminal.ended();
    }
}

/// A screen as a picture: a text for each word, over the colours behind them.
fn svg(screen: &Screen, shows: &str) -> String {
    let (width, height) = (f64::from(COLUMNS) * CELL.0 + 2.0 * MARGIN, f64::from(ROWS) * CELL.1 + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{shows}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n"
    );
    for row in 0..ROWS {
        let mut column = 0;
        while column < COLUMNS {
            let Some(first) = screen.cell(row, column) else { break };
            let from = column;
            let mut text = String::new();
            while let Some(cell) = screen.cell(row, column).filter(|cell| looks(cell) == looks(first)) {
                text.push_str(if cell.has_contents() || cell.is_wide_continuation() { cell.contents() } else { " " });
                column += 1;
            }
            run(&mut out, (row, from), column - from, &text, first);
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn run(out: &mut String, (row, from): (u16, u16), cells: u16, text: &str, first: &Cell) {
    let (ink, paper, bold) = looks(first);
    let (x, y) = (MARGIN + f64::from(from) * CELL.0, MARGIN + f64::from(row) * CELL.1);
    let width = f64::from(cells) * CELL.0;
    if paper != PAPER {
        let height = CELL.1;
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{paper}\"/>"
        );
    }
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    let mut column = 0;
    for word in text.split_inclusive(' ') {
        let cells = word.width();
        let (x, y, word) = (x + column as f64 * CELL.0, y + 13.0, word.trim_end());
        column += cells;
        if !word.is_empty() {
            let width = word.width() as f64 * CELL.0;
            let word = word.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{width:.1}\" fill=\"{ink}\"{weight}>{word}</text>"
            );
        }
    }
}

/// The colour of a cell's letters, the one behind them, and whether they are bold.
fn looks(cell: &Cell) -> (String, String, bool) {
    let (ink, paper) = (colour(cell.fgcolor(), INK), colour(cell.bgcolor(), PAPER));
    let (ink, paper) = if cell.inverse() { (paper, ink) } else { (ink, paper) };
    let ink = if cell.dim() { PALETTE[8].to_owned() } else { ink };
    (ink, paper, cell.bold())
}

fn colour(colour: Color, default: &str) -> String {
    match colour {
        Color::Default => default.to_owned(),
        Color::Idx(at) if at < 16 => PALETTE[usize::from(at)].to_owned(),
        Color::Idx(at @ 16..232) => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = at - 16;
            format!("#{:02x}{:02x}{:02x}", level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        Color::Idx(at) => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (at - 232)),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}
