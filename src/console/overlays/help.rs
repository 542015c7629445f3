//! The keys, by where they mean something.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::command::{COMMANDS, CommandScope};
use crate::console::core::context::Context;
use crate::console::core::key::{Code, Key};
use crate::console::core::layer::{Layer, LayerStep, scrolled};
use crate::console::core::message::ClickTarget;
use crate::console::view::keys::key_name;
use crate::console::view::{Canvas, Drawn};
use crate::ui::chrome::hint_line;
use crate::ui::scroll::LineWindow;
use crate::ui::{Align, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole, TextLine};

/// The help.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HelpLayer {
    /// First line shown.
    scroll: usize,
}

impl Layer for HelpLayer {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        let page = cx.measures.overlay_rows.saturating_sub(1).max(1) as isize;
        let by = match (key.code, key.ctrl) {
            (Code::Esc, _) | (Code::Char('q' | '?') | Code::Enter | Code::F(1), false) => return LayerStep::Closes,
            (Code::Up | Code::Char('k'), false) => -1,
            (Code::Down | Code::Char('j'), false) => 1,
            (Code::PageUp, _) | (Code::Char('u' | 'b'), true) => -page,
            (Code::PageDown, _) | (Code::Char('d' | 'f'), true) | (Code::Char(' '), false) => page,
            (Code::Home | Code::Char('g'), _) => isize::MIN,
            (Code::End | Code::Char('G'), _) => isize::MAX,
            _ => 0,
        };
        self.scroll_by(by, cx);
        LayerStep::Stays
    }

    fn scroll_by(&mut self, by: isize, cx: &Context) {
        self.scroll = scrolled(self.scroll, by, cx);
    }

    fn draw(&self, _cx: &Context, canvas: &mut Canvas<'_>) {
        help(self.scroll, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

/// Keys that mean the same wherever something is chosen or written.
const IN_OVERLAYS: [(&str, &str); 5] = [
    ("enter", "Chooses, or accepts what is written."),
    ("esc", "Closes without doing anything."),
    ("up  down", "Go through the entries, or through filters written before."),
    ("tab", "Completes the name of a column in a filter."),
    ("letters", "Narrow a menu to what they match."),
];

fn help(scroll: usize, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let foot = hint_line(&[KeyHint::new("esc", "close")], 20);
    let modal =
        Modal { pane: PaneFrame { foot, ..PaneFrame::new("Keys") }, width: 92, height: area.height.saturating_sub(2) };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let inside = modal.render(area, buf, look);
    let lines = help_lines(usize::from(inside.width.saturating_sub(2)), look);
    drawn.measures.overlay_lines = lines.len();
    drawn.measures.overlay_rows = usize::from(inside.height);
    let first = scroll.min(lines.len().saturating_sub(usize::from(inside.height)));
    LineWindow::scrolled(&lines, first).render(inside, buf, look);
}

fn keys_of(keys: &[&str], look: &Look) -> SafeText {
    let names: Vec<SafeText> = keys.iter().map(|key| key_name(key, look)).collect();
    SafeText::join(&names, "  ")
}

fn help_lines(width: usize, look: &Look) -> Vec<TextLine> {
    const KEYS: usize = 22;
    let mut lines = Vec::new();
    for &scope in CommandScope::ALL {
        if !lines.is_empty() {
            lines.push(TextLine::default());
        }
        lines.push(crate::ui::Section::new(scope.title()).line(width, look));
        for command in COMMANDS.iter().filter(|command| command.scope == scope) {
            let keys = if command.keys.is_empty() { "by the palette".into() } else { keys_of(command.keys, look) };
            let role = if command.keys.is_empty() { StyleRole::Muted } else { StyleRole::Key };
            let mut line = TextLine::of(look.pad(&keys, KEYS, Align::Left), role);
            for (index, part) in SafeText::new(command.help).wrap(width.saturating_sub(KEYS).max(12)).enumerate() {
                if index > 0 {
                    line.push_blanks(KEYS);
                }
                line.push(part, StyleRole::Text);
                lines.push(std::mem::take(&mut line));
            }
        }
    }
    lines.push(TextLine::default());
    lines.push(crate::ui::Section::new("Menus and fields").line(width, look));
    for (keys, help) in IN_OVERLAYS {
        let line = TextLine::of(look.pad(&keys.into(), KEYS, Align::Left), StyleRole::Key);
        lines.push(line.with(help, StyleRole::Text));
    }
    lines
}
