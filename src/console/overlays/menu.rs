//! Choosing from a menu, or from the palette of all commands, by a few letters.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::{
    ClickTarget, Code, Context, Destination, Key, Layer, LayerStep, Menu, MenuChoice, MenuItem, Reply, Request,
    ScreenAction, Ticket, ToastTone,
};
use crate::console::view::{Canvas, Drawn, input_line};
use crate::memory::search::Search;
use crate::ui::chrome::hint_line;
use crate::ui::table::scrollbar;
use crate::ui::{Align, KeyHint, Look, Modal, PaneFrame, SafeText, StyleRole, TextLine, look as lay};

/// Columns of a name beside keys.
const NAME: usize = 24;

/// A menu over the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct MenuLayer {
    /// Menu with its choices.
    pub menu: Menu,
    /// Whether it is the palette, where an entity and an id open that row.
    pub is_palette: bool,
    /// It is being found out whether the typed text names a database on its own.
    looking: Option<Ticket>,
    /// Whether a choice was made that waits until the typed text is known.
    entered: bool,
}

/// Characters of which every path or URL contains at least one.
const IN_PLACES: [char; 5] = ['/', '.', ':', '=', '~'];
/// Columns of the palette; then the least and most columns of a menu.
const PALETTE: u16 = 84;
const NARROW: u16 = 72;
const WIDEST: u16 = 120;

impl MenuLayer {
    /// Creates a menu.
    pub fn new(menu: Menu) -> Self {
        MenuLayer { menu, is_palette: false, looking: None, entered: false }
    }

    /// Creates the palette.
    pub fn palette(menu: Menu) -> Self {
        MenuLayer { is_palette: true, ..MenuLayer::new(menu) }
    }

    /// Handles a change of the typed text: the first entry is selected. If databases are listed, the text may name
    /// another one.
    fn typed(&mut self, cx: &mut Context) {
        (self.menu.selected, self.menu.named) = (0, None);
        cx.cancel(self.looking.take());
        if let Some(MenuChoice::OpenDatabase(text)) = self.menu.written()
            && text.contains(IN_PLACES)
        {
            self.looking = Some(cx.ask(Request::NamesDatabase(text)));
        }
    }

    /// Columns in which all choices fit, up to the greatest width of a menu.
    fn width(&self) -> u16 {
        const AROUND: usize = 10;
        let longest = |text: fn(&MenuItem) -> &str| {
            let widths = self.menu.items.iter().map(|item| SafeText::limited(text(item), usize::from(WIDEST)).width());
            widths.max().unwrap_or(0)
        };
        let note = longest(|item| item.unavailable.as_deref().unwrap_or(&item.note));
        ((longest(|item| &item.label) + note + AROUND) as u16).clamp(NARROW, WIDEST)
    }

    /// The choice made by a text that matches no entry: the name of a database, or words to search.
    fn written(&self) -> Option<MenuChoice> {
        let text = self.menu.input.text().trim();
        let sought = || Search::parse(text).ok().map(|_| MenuChoice::Go(Destination::Find(text.to_owned())));
        self.menu.written().or_else(|| sought().filter(|_| self.is_palette))
    }

    fn named(&self) -> Option<Destination> {
        self.is_palette.then(|| self.menu.named_row()).flatten()
    }

    /// Makes the selected choice.
    fn choose(&self, cx: &mut Context) -> LayerStep {
        if let Some(destination) = self.named() {
            cx.go(destination);
            return LayerStep::Closes;
        }
        let matching = self.menu.matching();
        let Some(item) = matching.get(self.menu.selected) else {
            let Some(written) = self.written() else { return LayerStep::Stays };
            cx.act(ScreenAction::Choose(written));
            return LayerStep::Closes;
        };
        // The command and the place themselves report the reason why they are unavailable, and the remedy.
        let tells = matches!(item.choice, MenuChoice::Command(_) | MenuChoice::Go(_));
        match &item.unavailable {
            Some(reason) if !tells => cx.say(ToastTone::Warn, reason.clone()),
            _ => cx.act(ScreenAction::Choose(item.choice.clone())),
        }
        LayerStep::Closes
    }
}

impl Layer for MenuLayer {
    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        if self.entered && self.looking.is_some() && key.code != Code::Esc {
            // Keys typed later are not part of the submitted text.
            return LayerStep::Stays;
        }
        self.entered = key.code == Code::Enter && self.looking.is_some();
        match (key.code, key.ctrl) {
            (Code::Esc, _) => return LayerStep::Closes,
            (Code::Enter, _) if self.entered => {}
            (Code::Enter, _) => return self.choose(cx),
            (Code::Up | Code::BackTab, _) | (Code::Char('p'), true) => self.menu.move_by(-1),
            (Code::Down | Code::Tab, _) | (Code::Char('n'), true) => self.menu.move_by(1),
            (Code::PageUp, _) => self.menu.move_by(-10),
            (Code::PageDown, _) => self.menu.move_by(10),
            _ => {
                let before = self.menu.input.text().to_owned();
                if self.menu.input.press(key) && self.menu.input.text() != before {
                    self.typed(cx);
                }
            }
        }
        LayerStep::Stays
    }

    fn paste(&mut self, text: &str, cx: &mut Context) {
        self.menu.input.paste(text, cx);
        self.typed(cx);
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        if self.looking.take_if(|looking| *looking == ticket).is_none() {
            return;
        }
        if reply == Reply::NamesDatabase(true) {
            self.menu.name();
        }
        if std::mem::take(&mut self.entered) {
            cx.act(ScreenAction::Press(Key::plain(Code::Enter)));
        }
    }

    fn click(&mut self, target: &ClickTarget, cx: &mut Context) -> LayerStep {
        match target {
            ClickTarget::MenuItem(position) => {
                self.menu.selected = *position;
                self.choose(cx)
            }
            ClickTarget::Overlay => LayerStep::Stays,
            _ => LayerStep::Closes,
        }
    }

    fn scroll_by(&mut self, by: isize, _cx: &Context) {
        self.menu.move_by(by);
    }

    fn draw(&self, _cx: &Context, canvas: &mut Canvas<'_>) {
        draw_menu(self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}

fn draw_menu(layer: &MenuLayer, look: &Look, area: Rect, buf: &mut Buffer, drawn: &mut Drawn) {
    let (menu, named) = (&layer.menu, layer.named());
    let width = if layer.is_palette { PALETTE } else { layer.width() };
    let matching = if named.is_some() { Vec::new() } else { menu.matching() };
    let height = (menu.items.len() as u16).min(20) + 4;
    let mut foot = hint_line(&[KeyHint::new("enter", "choose"), KeyHint::new("esc", "close")], 40);
    if !matching.is_empty() {
        foot.push(format!("   {} of {}", menu.selected + 1, matching.len()), StyleRole::Muted);
    }
    let modal = Modal { pane: PaneFrame { foot, ..PaneFrame::new(SafeText::new(&menu.title)) }, width, height };
    drawn.hits.add(modal.area(area), ClickTarget::Overlay);
    let inside = modal.render(area, buf, look);
    input_line(&menu.input, "", look, lay::row(inside, 0), buf);
    let body = lay::below(inside, 2);
    let lines = usize::from(body.height);
    // The end of a path is the most telling.
    let has_keys = menu.items.iter().any(|item| !item.keys.is_empty()) && !menu.names_databases();
    let first = (menu.selected + 1).saturating_sub(lines);
    let longest = menu
        .items
        .iter()
        .chain(&menu.named)
        .map(|item| SafeText::limited(&item.label, usize::from(width)).width())
        .max()
        .unwrap_or(0);
    let mut rows = body;
    if matching.len() > lines {
        scrollbar(first as u64, lines as u64, matching.len() as u64, body, buf, look);
        rows.width = body.width.saturating_sub(2);
    }
    for (index, item) in matching.iter().enumerate().skip(first).take(lines) {
        let place = lay::row(rows, (index - first) as u16);
        item_line(item, if has_keys { NAME } else { longest }, usize::from(place.width), look).render(place, buf, look);
        drawn.hits.add(place, ClickTarget::MenuItem(index));
        if index == menu.selected {
            look.select(place, buf, StyleRole::Selection);
        }
    }
    match named {
        Some(Destination::Row(entity, id)) => {
            let line = TextLine::of("opens the ", StyleRole::Muted)
                .with(entity.title(), StyleRole::Text)
                .with(" ", StyleRole::Text);
            line.with(SafeText::limited(&id, 80), StyleRole::Accent).render(lay::row(body, 0), buf, look);
        }
        _ if matching.is_empty() => {
            let words = match layer.written() {
                Some(MenuChoice::OpenDatabase(_)) => "enter opens what you typed",
                Some(_) => "nothing matches; enter looks for these words in all texts",
                None => "nothing matches",
            };
            look.text(lay::row(body, 0), buf, &words.into(), StyleRole::Muted);
        }
        _ => {}
    }
}

fn item_line(item: &MenuItem, name: usize, width: usize, look: &Look) -> TextLine {
    let keys = SafeText::limited(&item.keys, 24);
    let off = item.unavailable.is_some();
    let label = SafeText::limited(&item.label, width.saturating_sub(2));
    let note = item.unavailable.as_ref().unwrap_or(&item.note);
    let mut line = TextLine::default();
    let name = name.min(width * 3 / 5);
    line.push(look.pad(&label, name, Align::Left), if off { StyleRole::Stale } else { StyleRole::Text });
    line.push("  ", StyleRole::Text);
    let room = width.saturating_sub(line.width() + if keys.is_empty() { 0 } else { keys.width() + 2 });
    line.push(look.pad(&SafeText::limited(note, room), room, Align::Left), StyleRole::Muted);
    if !keys.is_empty() {
        line.push_apart(keys, if off { StyleRole::Stale } else { StyleRole::Key });
    }
    line
}
