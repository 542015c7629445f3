//! The help of a screen, searchable: how the numbers of the selected row are computed, the screen's keys and words,
//! then everything else.

use std::borrow::Cow;

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::glossary::{GlossaryEntry, words_of};
use crate::console::core::layer::scrolled;
use crate::console::core::{
    COMMANDS, ClickTarget, Code, CommandId, CommandScope, ConsoleCommand, Context, Input, Key, KeyMap, Layer,
    LayerStep, Screen,
};
use crate::console::view::{Canvas, Drawn, input_line, key_name};
use crate::memory::Entity;
use crate::memory::workings::{NumberWorking, workings};
use crate::ui::chrome::hint_line;
use crate::ui::scroll::LineWindow;
use crate::ui::{Align, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole, TextLine, look as lay};

/// The help of a screen: its keys, its words, then everything else.
#[derive(Debug, Clone, PartialEq)]
pub struct HelpLayer {
    /// The name of the screen.
    title: String,
    /// The scopes whose keys are valid there, its own first.
    scopes: Vec<CommandScope>,
    /// Commands that can not be given here or do not fit the selected row.
    unfit: Vec<CommandId>,
    /// Explanations of how the numbers of the selected row are worked out.
    numbers: Vec<NumberWorking>,
    /// The words explained.
    words: [GlossaryEntry; 5],
    /// Search text, while or after it is typed.
    sought: Option<Input>,
    /// True while the search text is being typed.
    writing: bool,
    /// First line shown.
    scroll: usize,
}

impl HelpLayer {
    /// Creates the help of a screen; `unfit` are commands that do not apply to the selection.
    pub fn of(screen: &dyn Screen, unfit: Vec<CommandId>, cx: &Context) -> Self {
        let own = Some(screen.scope()).filter(|scope| !scope.is_shared());
        let rows: &[CommandScope] = match (screen.lists(), screen.selected()) {
            (Some(_), _) => &[CommandScope::List, CommandScope::Rows],
            (None, Some(_)) => &[CommandScope::Rows],
            _ => &[],
        };
        HelpLayer {
            title: screen.title(cx),
            scopes: own.into_iter().chain(rows.iter().copied()).collect(),
            unfit,
            numbers: match screen.whole_row() {
                Some(row) => {
                    let context = |entity| screen.context_rows(entity);
                    workings(row, context(Entity::Feedback), context(Entity::UtilityEvent))
                }
                None => Vec::new(),
            },
            words: words_of(screen.leads_here()),
            sought: None,
            writing: false,
            scroll: 0,
        }
    }

    /// Handles a key while the search text is written.
    fn write(&mut self, key: Key) {
        match key.code {
            Code::Enter => self.writing = false,
            Code::Esc => (self.writing, self.sought) = (false, None),
            _ => {
                if let Some(sought) = &mut self.sought {
                    sought.press(key);
                }
                self.scroll = 0;
            }
        }
    }
}

impl Layer for HelpLayer {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        if self.writing {
            self.write(key);
            return LayerStep::Stays;
        }
        let page = cx.measures.overlay_rows.saturating_sub(1).max(1) as isize;
        let by = match (key.code, key.ctrl) {
            (Code::Esc, _) if self.sought.take().is_some() => 0,
            (Code::Esc, _) | (Code::Char('q' | '?') | Code::Enter | Code::F(1), false) => return LayerStep::Closes,
            (Code::Char('/'), false) => {
                (self.sought, self.writing) = (Some(Input::default()), true);
                0
            }
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

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        help(self, &cx.settings.keys, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

/// Keys with the same meaning in every menu and input.
const IN_OVERLAYS: [(&str, &str); 5] = [
    ("enter", "Chooses, or accepts what you typed."),
    ("esc", "Closes without doing anything."),
    ("up  down", "Go through the entries, or through earlier filters."),
    ("tab", "Completes the name of a column in a filter."),
    ("letters", "Narrow a menu to what they match."),
];

fn help(layer: &HelpLayer, map: &KeyMap, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let foot = hint_line(&[KeyHint::new("/", "search"), KeyHint::new("esc", "close")], 30);
    let modal =
        Modal { pane: PaneFrame { foot, ..PaneFrame::new("Help") }, width: 92, height: area.height.saturating_sub(2) };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let mut inside = modal.render(area, buf, look);
    if let Some(sought) = &layer.sought {
        input_line(sought, "", look, lay::row(inside, 0), buf);
        inside = lay::below(inside, 2);
    }
    let width = usize::from(inside.width.saturating_sub(2));
    let text = layer.sought.as_ref().map(|sought| sought.text().trim().to_lowercase()).unwrap_or_default();
    let lines = lines(&sections(layer, map), &text, width, look);
    drawn.measures.overlay_lines = lines.len();
    drawn.measures.overlay_rows = usize::from(inside.height);
    let first = layer.scroll.min(lines.len().saturating_sub(usize::from(inside.height)));
    LineWindow::scrolled(&lines, first).render(inside, buf, look);
}

struct HelpLine<'m> {
    /// Labels at the left: keys, or a word.
    keys: Vec<&'m str>,
    /// Name of the line, which is searched too.
    title: &'static str,
    /// Effect of the keys, or meaning of the word.
    help: Cow<'static, str>,
}

impl HelpLine<'_> {
    fn named(name: &'static str, help: impl Into<Cow<'static, str>>) -> Self {
        HelpLine { keys: vec![name], title: name, help: help.into() }
    }

    fn holds(&self, sought: &str) -> bool {
        let keys = self.keys.iter().any(|key| key.to_lowercase() == sought);
        keys || [self.title, &*self.help].iter().any(|text| text.to_lowercase().contains(sought))
    }
}

/// A part of the help: its heading and its lines.
type HelpSection<'m> = (String, Vec<HelpLine<'m>>);

/// The keys that lead to tabs are many, and all alike.
const TABS: &str = "Shows a tab: o overview, t story, c chain, s segments, a canvas, f feedback, u utility, m memories, e events, \
     x accesses, w where, r related, j JSON.";

fn keys_in(scope: CommandScope, map: &KeyMap, listed: impl Fn(CommandId) -> bool) -> Vec<HelpLine<'_>> {
    let is_first = |command: &&ConsoleCommand| match command.id {
        CommandId::ShowTab(tab) => tab == "overview",
        CommandId::Seek(onward) => onward,
        _ => true,
    };
    let commands = COMMANDS.iter().filter(|command| command.scope == scope).filter(is_first);
    let commands = commands.filter(|command| listed(command.id));
    let line = |command: &'static ConsoleCommand| match command.id {
        CommandId::Seek(_) => HelpLine { keys: vec![";", ","], title: command.title, help: command.help.into() },
        CommandId::ShowTab(_) => HelpLine { keys: vec!["."], title: "Tabs", help: TABS.into() },
        _ => HelpLine { keys: map.keys(command).collect(), title: command.title, help: command.help.into() },
    };
    commands.map(line).collect()
}

/// The numbers of the selected row, the screen's own keys, its words, the general keys, then the keys of other screens.
fn sections<'m>(layer: &HelpLayer, map: &'m KeyMap) -> Vec<HelpSection<'m>> {
    let (title, scopes) = (&layer.title, &layer.scopes);
    let mut sections: Vec<HelpSection<'_>> = Vec::new();
    if !layer.numbers.is_empty() {
        let numbers = layer.numbers.iter().map(|(number, working)| HelpLine::named(number, working.clone()));
        sections.push(("Numbers here".to_owned(), numbers.collect()));
    }
    // A screen's own meaning of a key comes before its general meaning.
    let mut taken: Vec<&str> = Vec::new();
    let mut keys = |scope: CommandScope| {
        let mut both = [true, false].map(|fit| keys_in(scope, map, |id| layer.unfit.contains(&id) != fit));
        both.iter_mut().flatten().for_each(|line| line.keys.retain(|key| !taken.contains(key)));
        taken.extend(both.iter().flatten().flat_map(|line| &line.keys));
        both
    };
    let (mut here, mut unfit) = (Vec::new(), Vec::new());
    for scope in scopes {
        let [fits, other] = keys(*scope);
        here.extend(fits);
        unfit.extend(other);
    }
    let [everywhere, other] = keys(CommandScope::Everywhere);
    unfit.extend(other);
    if !here.is_empty() {
        sections.push((format!("Keys here: {title}"), here));
    }
    sections.push((
        "Words here".to_owned(),
        layer.words.iter().map(|(word, means)| HelpLine::named(word, *means)).collect(),
    ));
    sections.push((CommandScope::Everywhere.title().to_owned(), everywhere));
    let overlays = IN_OVERLAYS.iter().map(|(keys, help)| HelpLine::named(keys, *help)).collect();
    sections.push(("Menus and fields".to_owned(), overlays));
    if !unfit.is_empty() {
        sections.push(("Not here, or not for what is selected".to_owned(), unfit));
    }
    let others =
        CommandScope::ALL.iter().filter(|scope| **scope != CommandScope::Everywhere && !scopes.contains(scope));
    sections.extend(others.map(|scope| (format!("Elsewhere: {}", scope.title()), keys_in(*scope, map, |_| true))));
    sections
}

/// The lines that contain the searched text, under their headings.
fn lines(sections: &[HelpSection<'_>], sought: &str, width: usize, look: &Look) -> Vec<TextLine> {
    const KEYS: usize = 24;
    let columns = if width < 2 * KEYS { width / 3 } else { KEYS };
    let mut lines = Vec::new();
    for (title, entries) in sections {
        let found: Vec<_> = entries.iter().filter(|line| line.holds(sought)).collect();
        if found.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(TextLine::default());
        }
        lines.push(crate::ui::Section::new(SafeText::limited(title, width)).line(width, look));
        for HelpLine { keys, help, title } in found {
            let role = if keys.is_empty() { StyleRole::Muted } else { StyleRole::Key };
            // A command without a key is reached through the palette.
            let palette = || SafeText::limited(&format!(": {}", title.to_lowercase()), columns.saturating_sub(1));
            let keys = if keys.is_empty() { palette() } else { keys_of(keys, look) };
            let mut line = TextLine::of(look.pad(&keys, columns, Align::Left), role);
            for (index, part) in SafeText::new(help).wrap(width.saturating_sub(columns).max(12)).enumerate() {
                if index > 0 {
                    line.push_blanks(columns);
                }
                line.push(part, StyleRole::Text);
                lines.push(std::mem::take(&mut line));
            }
        }
    }
    if lines.is_empty() {
        lines.push(TextLine::of("no key or command matches", StyleRole::Muted));
    }
    lines
}

fn keys_of(keys: &[&str], look: &Look) -> SafeText {
    let names: Vec<SafeText> = keys.iter().map(|key| key_name(key, look)).collect();
    SafeText::join(&names, "  ")
}
