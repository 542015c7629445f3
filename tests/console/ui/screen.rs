//! Draws into a buffer and reads it back as text or as styles.

use std::fmt::Write;

use mnemoscope::ui::TextLine;
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, layout::Rect};

/// Draws a screen of this size as text, one line per row, trailing blanks removed.
pub fn draw(width: u16, height: u16, paint: impl FnOnce(Rect, &mut Buffer)) -> String {
    let buf = buffer(width, height, paint);
    let mut text = String::new();
    for y in 0..height {
        let mut x = 0;
        let mut line = String::new();
        while x < width {
            let symbol = buf[(x, y)].symbol();
            line.push_str(symbol);
            x += unicode_width::UnicodeWidthStr::width(symbol).max(1) as u16;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The runs of equal style of every row: `"text" style`.
pub fn styles(width: u16, height: u16, paint: impl FnOnce(Rect, &mut Buffer)) -> String {
    let buf = buffer(width, height, paint);
    let mut out = String::new();
    for y in 0..height {
        let cells: Vec<_> = (0..width).map(|x| &buf[(x, y)]).collect();
        for run in cells.chunk_by(|a, b| a.style() == b.style()) {
            let text: String = run.iter().map(|cell| cell.symbol()).collect();
            let cell = run[0];
            if !text.trim().is_empty() || cell.bg != ratatui::style::Color::Reset || !cell.modifier.is_empty() {
                let _ = writeln!(out, "{y:>2} {:?} {} on {} {:?}", text, cell.fg, cell.bg, cell.modifier);
            }
        }
    }
    out
}

/// A line's text.
pub fn whole_text_of(line: &TextLine) -> String {
    line.runs.iter().map(|run| run.text.as_str()).collect()
}

/// A line's text without blanks at its end.
pub fn text_of(line: &TextLine) -> String {
    whole_text_of(line).trim_end().to_owned()
}

fn buffer(width: u16, height: u16, paint: impl FnOnce(Rect, &mut Buffer)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen in memory");
    terminal
        .draw(|frame| {
            let area = frame.area();
            paint(area, frame.buffer_mut());
        })
        .expect("drawn");
    terminal.backend().buffer().clone()
}
