//! A screen as lines of text for screen readers: the changes since the last one, without frames and charts.

use std::collections::BTreeSet;

use ratatui::buffer::Buffer;
use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr as _;

/// Least columns of a selected row; badges and keys are reversed too, but shorter.
const SELECTED: usize = 24;

/// Circumstances of a drawing that decide which of its parts are output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinearMoment {
    /// True when a key was pressed since the last screen; without that, numbers that change by themselves, such as
    /// ages, are not news.
    pub pressed: bool,
    /// Number of the overlay; it is drawn alone.
    pub layer: Option<u64>,
    /// Whether the screen is still loading: rows of the screen before may be visible.
    pub reading: bool,
    /// Whether a search is running, with its progress shown.
    pub busy: bool,
    /// The current message.
    pub said: Option<String>,
}

/// Turns successive screens into lines. They are drawn without colours: a selected row is reversed.
#[derive(Debug, Default)]
pub struct LinearTeller {
    before: Option<LinearScreen>,
    /// The screen below the overlay, as last output.
    below: Option<LinearScreen>,
    layer: Option<u64>,
    /// Whether only the name of the screen was output: the rest follows once it has loaded.
    named: bool,
    /// Whether the last output was a selected row: the change of its details that follows is not output.
    moved: bool,
    said: Option<String>,
}

/// A screen in lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct LinearScreen {
    /// The lines with content, from the top, without frames.
    lines: Vec<String>,
    /// Index of the selected line.
    selected: Option<usize>,
    /// Indexes of the lines in the focused frame, if there are several frames.
    focused: Vec<usize>,
}

impl LinearTeller {
    /// Returns the lines to output for a screen: all of them for another screen, the selected row if a key moved it,
    /// the focused part if the focus moved, else the new lines.
    pub fn tell(&mut self, buf: &Buffer, moment: &LinearMoment) -> Vec<String> {
        let mut told = self.tell_screen(LinearScreen::of(buf), moment);
        if moment.said != self.said {
            told.extend(moment.said.clone());
            self.said.clone_from(&moment.said);
        }
        told
    }

    fn tell_screen(&mut self, now: LinearScreen, moment: &LinearMoment) -> Vec<String> {
        let layer = std::mem::replace(&mut self.layer, moment.layer);
        if moment.layer != layer {
            self.moved = false;
            if layer.is_none() {
                self.below = self.before.take();
            } else {
                self.before = None;
            }
            if moment.layer.is_none() {
                self.before = self.below.take();
                if self.before.as_ref().is_some_and(|before| before.lines.first() == now.lines.first()) {
                    if !moment.reading {
                        return self.back(now);
                    }
                    self.named = true;
                }
            }
        }
        let is_other = self.before.as_ref().is_none_or(|before| before.lines.first() != now.lines.first());
        if (is_other || self.named) && moment.layer.is_none() && moment.reading {
            let name = if is_other { now.lines.first().cloned() } else { None };
            (self.named, self.before) = (true, Some(now));
            return name.into_iter().collect();
        }
        if std::mem::take(&mut self.named) {
            let lines = (1..now.lines.len()).map(|at| now.line(at)).collect();
            self.before = Some(now);
            return lines;
        }
        if moment.busy && !moment.pressed && !is_other {
            return Vec::new();
        }
        match self.before.replace(now.clone()) {
            Some(before) if !is_other => self.news(&before, &now, moment.pressed),
            _ => now.whole(),
        }
    }

    /// Announces the screen again after an overlay was closed.
    fn back(&mut self, now: LinearScreen) -> Vec<String> {
        let chosen = now.selected.map(|at| now.line(at));
        let told = now.lines.first().cloned().into_iter().chain(chosen).collect();
        self.before = Some(now);
        told
    }

    fn news(&mut self, before: &LinearScreen, now: &LinearScreen, pressed: bool) -> Vec<String> {
        let news = |line: &str| if pressed { line.to_owned() } else { without_numbers(line) };
        if pressed && now.focus() != before.focus() && before.focus().is_some() {
            self.moved = false;
            return now.focused();
        }
        let (chosen, earlier) = (now.chosen(), before.chosen());
        let moved = now.selected != before.selected || chosen.map(news) != earlier.map(news);
        if let (Some(chosen), Some(_), true) = (chosen, earlier, pressed && moved) {
            self.moved = true;
            return vec![chosen.to_owned()];
        }
        self.moved &= !pressed;
        if self.moved {
            return Vec::new();
        }
        let known: BTreeSet<String> = before.lines.iter().map(|line| news(line)).collect();
        let is_new = |at: &usize| !known.contains(&news(&now.lines[*at]));
        (0..now.lines.len()).filter(is_new).map(|at| now.line(at)).collect()
    }

    /// Forgets the last screen, so that the next one is output in full.
    pub fn forget(&mut self) {
        *self = LinearTeller::default();
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
            let edge = &buf[(buf.area.left(), y)];
            if matches!(edge.symbol(), "│" | "╭") && !edge.modifier.contains(Modifier::DIM) {
                screen.focused.push(screen.lines.len());
            }
            screen.lines.push(line);
        }
        screen
    }

    fn chosen(&self) -> Option<&str> {
        self.selected.map(|at| self.lines[at].as_str())
    }

    /// The position of the focused part.
    fn focus(&self) -> Option<usize> {
        self.focused.first().copied()
    }

    /// The focused part: its name and the selected row if that is in it, else all of it.
    fn focused(&self) -> Vec<String> {
        let told = |at: &&usize| self.focus() == Some(**at) || self.selected == Some(**at);
        let has_selected = self.selected.is_some_and(|at| self.focused.contains(&at));
        self.focused.iter().filter(|at| !has_selected || told(at)).map(|at| self.line(*at)).collect()
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

/// A row of the screen for output: separate parts are joined by commas.
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

    fn pressed() -> LinearMoment {
        LinearMoment { pressed: true, ..LinearMoment::default() }
    }

    fn idle() -> LinearMoment {
        LinearMoment::default()
    }

    fn over(layer: u64) -> LinearMoment {
        LinearMoment { layer: Some(layer), ..pressed() }
    }

    #[test]
    fn the_first_screen_is_told_without_frames() {
        let told = LinearTeller::default().tell(&screen(&LIST, Some(2)), &pressed());
        assert_eq!(
            told,
            ["demo › episodes", "episodes", "selected: late loads, failure, 2m", "貨物 lost, success, 3m"]
        );
    }

    #[test]
    fn a_move_tells_the_row_and_what_is_said_of_it() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), &pressed());
        assert_eq!(teller.tell(&screen(&LIST, Some(3)), &pressed()), ["貨物 lost, success, 3m"]);
        let mut details = LIST.to_vec();
        details.push("the carrier did not answer");
        let heard = LinearMoment { said: Some("3 rows were written".into()), ..idle() };
        let told = teller.tell(&screen(&details, Some(3)), &heard);
        assert_eq!(told, ["3 rows were written"], "the details were not asked for, the message is news");
        assert!(teller.tell(&screen(&details, Some(3)), &heard).is_empty(), "it is said once");
    }

    #[test]
    fn what_was_not_there_is_told_and_clocks_are_not() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), &pressed());
        let mut later = LIST;
        later[2] = "│ late loads  failure ▆▆▁ 9m│";
        later[1] = "╭─ episodes ─ 3 new ╮";
        let busy = LinearMoment { busy: true, ..idle() };
        assert!(teller.tell(&screen(&later, Some(2)), &busy).is_empty(), "progress is not news");
        assert_eq!(teller.tell(&screen(&later, Some(2)), &idle()), ["episodes, 3 new"]);
    }

    #[test]
    fn another_screen_is_told_as_a_whole_once_it_was_read() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), &pressed());
        let mut other = LIST;
        other[0] = "demo › cases";
        let reading = LinearMoment { reading: true, ..pressed() };
        assert_eq!(teller.tell(&screen(&other, Some(2)), &reading), ["demo › cases"], "old rows are there");
        other[3] = "│ a case│";
        let told = teller.tell(&screen(&other, Some(2)), &idle());
        assert_eq!(told, ["episodes", "selected: late loads, failure, 2m", "a case"]);
        teller.forget();
        assert_eq!(teller.tell(&screen(&other, None), &pressed()).len(), 4);
    }

    #[test]
    fn what_lies_over_a_screen_is_told_alone_and_then_where_we_are() {
        let mut teller = LinearTeller::default();
        teller.tell(&screen(&LIST, Some(2)), &pressed());
        let menu = ["╭─ Theme ────────╮", "│ dark            │", "│ light           │"];
        assert_eq!(teller.tell(&screen(&menu, Some(1)), &over(1)), ["Theme", "selected: dark", "light"]);
        assert_eq!(teller.tell(&screen(&menu, Some(2)), &over(1)), ["light"]);
        let told = teller.tell(&screen(&LIST, Some(2)), &pressed());
        assert_eq!(told, ["demo › episodes", "selected: late loads, failure, 2m"]);
    }

    #[test]
    fn the_part_that_gets_the_keys_is_told() {
        let panes = ["demo › episodes", "╭─ episodes ───╮", "│ late loads   │", "╭─ episode ────╮", "│ in Lyon      │"];
        let with_keys = |list: bool| {
            let mut buf = screen(&panes, Some(2));
            let dim = if list { 3..5 } else { 1..3 };
            for y in dim {
                buf[(0, y)].modifier.insert(Modifier::DIM);
            }
            buf
        };
        let mut teller = LinearTeller::default();
        teller.tell(&with_keys(true), &pressed());
        assert_eq!(teller.tell(&with_keys(false), &pressed()), ["episode", "in Lyon"]);
        assert_eq!(teller.tell(&with_keys(true), &pressed()), ["episodes", "selected: late loads"]);
    }
}
