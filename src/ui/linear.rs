//! A screen told in lines: what is new since the last one, without frames and pictures, for screen readers.

use std::collections::BTreeSet;

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr as _;

/// Columns of a selected row at least; badges and keys are reversed too, and shorter.
const SELECTED: usize = 24;

/// Puts successive screens into words. They are drawn without colours: a selected row is one in reverse.
#[derive(Debug, Default)]
pub struct LinearTeller {
    before: Option<LinearScreen>,
    /// The last that was said was a selected row: what its details then become was not asked for.
    moved: bool,
}

/// A screen in lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct LinearScreen {
    /// The lines that say something, from the top, without frames.
    lines: Vec<String>,
    /// Index of the selected line.
    selected: Option<usize>,
}

impl LinearTeller {
    /// Returns the lines to be said about a screen: all of them when it is another screen, the selected row when a
    /// key moved that, else the lines that were not there before. `pressed`: a key was pressed since the last screen;
    /// without that, numbers that change by themselves, such as ages, are no news.
    pub fn tell(&mut self, buf: &Buffer, pressed: bool) -> Vec<String> {
        let now = LinearScreen::of(buf);
        let Some(before) = self.before.replace(now.clone()) else { return now.whole() };
        if now.lines.first() != before.lines.first() {
            return now.whole();
        }
        let news = |line: &str| if pressed { line.to_owned() } else { without_numbers(line) };
        let (chosen, earlier) = (now.chosen(), before.chosen());
        let moved = now.selected != before.selected || chosen.map(news) != earlier.map(news);
        if let (Some(chosen), Some(_), true) = (chosen, earlier, pressed && moved) {
            self.moved = true;
            return vec![chosen.to_owned()];
        }
        self.moved &= !pressed;
        // Messages are in the last line.
        let first = if self.moved { now.lines.len().saturating_sub(1) } else { 0 };
        let known: BTreeSet<String> = before.lines.iter().map(|line| news(line)).collect();
        let is_new = |at: &usize| !known.contains(&news(&now.lines[*at]));
        (first..now.lines.len()).filter(is_new).map(|at| now.line(at)).collect()
    }

    /// The next screen is told as a whole.
    pub fn forget(&mut self) {
        self.before = None;
    }
}

impl LinearScreen {
    fn of(buf: &Buffer) -> Self {
        let mut screen = LinearScreen::default();
        for y in buf.area.top()..buf.area.bottom() {
            let (mut text, mut reversed, mut covered) = (String::new(), 0, 0_usize);
            for x in buf.area.left()..buf.area.right() {
                let cell = &buf[(x, y)];
                reversed += usize::from(cell.modifier.contains(Modifier::REVERSED));
                if covered > 0 {
                    covered -= 1;
                    continue;
                }
                covered = cell.symbol().width().saturating_sub(1);
                text.push_str(if is_picture(cell.symbol()) { " " } else { cell.symbol() });
            }
            let line = spoken(&text);
            if line.is_empty() {
                continue;
            }
            if reversed >= SELECTED && screen.selected.is_none() {
                screen.selected = Some(screen.lines.len());
            }
            screen.lines.push(line);
        }
        screen
    }

    fn chosen(&self) -> Option<&str> {
        self.selected.map(|at| self.lines[at].as_str())
    }

    fn line(&self, at: usize) -> String {
        let mark = if self.selected == Some(at) { "selected: " } else { "" };
        format!("{mark}{}", self.lines[at])
    }

    fn whole(&self) -> Vec<String> {
        (0..self.lines.len()).map(|at| self.line(at)).collect()
    }
}

/// Frames, bars and dots of charts.
fn is_picture(symbol: &str) -> bool {
    symbol.chars().all(|c| matches!(c, '\u{2500}'..='\u{259f}' | '\u{2800}'..='\u{28ff}'))
}

/// A row of the screen as it is said: what stands apart is parted by commas.
fn spoken(text: &str) -> String {
    let parts = text
        .split("  ")
        .map(str::trim)
        .filter(|part| part.chars().any(|c| c.is_alphanumeric() || c.is_ascii_punctuation()));
    parts.collect::<Vec<_>>().join(", ")
}

/// A line without its digits.
fn without_numbers(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    fn screen(lines: &[&str], selected: Option<u16>) -> Buffer {
        let mut buf = Buffer::with_lines(lines.iter().map(|line| format!("{line:<40}")));
        if let Some(y) = selected {
            buf.set_style(ratatui::layout::Rect::new(1, y, 38, 1), Style::new().add_modifier(Modifier::REVERSED));
        }
        buf
    }

    const LIST: [&str; 4] =
        ["demo › episodes", "╭─ episodes ────────╮", "│ late loads  failure ▆▆▁ 2m│", "│ 貨物 lost   success  3m│"];

    #[test]
    fn the_first_screen_is_told_without_frames() {
        let told = LinearTeller::default().tell(&screen(&LIST, Some(2)), true);
        assert_eq!(
            told,
            ["demo › episodes", "episodes", "selected: late loads, failure, 2m", "貨物 lost, success, 3m"]
        );
    }

    #[test]
    fn a_move_tells_the_row_only() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), true);
        assert_eq!(teller.tell(&screen(&LIST, Some(3)), true), ["貨物 lost, success, 3m"]);
        let mut details = LIST.to_vec();
        details.extend(["the carrier did not answer", "3 rows were written"]);
        let told = teller.tell(&screen(&details, Some(3)), false);
        assert_eq!(told, ["3 rows were written"], "the details were not asked for, the message is news");
    }

    #[test]
    fn what_was_not_there_is_told_and_clocks_are_not() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), true);
        let mut later = LIST;
        later[2] = "│ late loads  failure ▆▆▁ 9m│";
        later[1] = "╭─ episodes ─ 3 new ╮";
        assert_eq!(teller.tell(&screen(&later, Some(2)), false), ["episodes, 3 new"]);
    }

    #[test]
    fn another_screen_is_told_as_a_whole() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), true);
        let mut other = LIST;
        other[0] = "demo › cases";
        assert_eq!(teller.tell(&screen(&other, None), true).len(), 4);
        teller.forget();
        assert_eq!(teller.tell(&screen(&other, None), true).len(), 4);
    }
}
