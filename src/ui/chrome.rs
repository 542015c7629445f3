//! The console's furniture: key hints, breadcrumbs, tabs, section headings, badges, toasts.

use ratatui::style::{Modifier, Style};
use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    card::CardTone,
    figures,
    glyphs::Glyphs,
    line::TextLine,
    look::{Look, below, right_of, row},
    text::SafeText,
    theme::StyleRole,
};

/// A key and its current action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHint {
    /// The key as people read it: `Enter`, `^R`, `g e`.
    pub key: SafeText,
    /// Action of the key, in a word or two.
    pub does: SafeText,
    /// Appearance of the hint.
    pub kind: HintKind,
}

/// Appearance of a key hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HintKind {
    /// May be pressed.
    #[default]
    Ready,
    /// Currently disabled.
    Off,
    /// Irreversible.
    Danger,
}

impl KeyHint {
    /// A key that may be pressed.
    pub fn new(key: impl Into<SafeText>, does: impl Into<SafeText>) -> Self {
        Self { key: key.into(), does: does.into(), kind: HintKind::Ready }
    }

    fn line(&self) -> TextLine {
        let (key, does) = match self.kind {
            HintKind::Ready => (StyleRole::Key, StyleRole::Muted),
            HintKind::Off => (StyleRole::Stale, StyleRole::Stale),
            HintKind::Danger => (StyleRole::Danger, StyleRole::Muted),
        };
        TextLine::of(self.key.clone(), key).with(" ", StyleRole::Text).with(self.does.clone(), does)
    }
}

/// As many of the hints, in order, as fit entirely into `width` columns.
pub fn hint_line(hints: &[KeyHint], width: usize) -> TextLine {
    let mut out = TextLine::default();
    for hint in hints {
        let line = hint.line();
        let gap = if out.runs.is_empty() { 0 } else { 3 };
        if out.width() + gap + line.width() > width {
            break;
        }
        out.push_blanks(gap);
        out.append(line);
    }
    out
}

/// The last line of the screen: the available keys, and at the right those that must never be dropped (help).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footer {
    /// The most useful first; those that do not fit are dropped from the end.
    pub hints: Vec<KeyHint>,
    /// Always shown, at the right.
    pub always: Vec<KeyHint>,
}

impl Footer {
    /// Draws the footer in the first row of `area`.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = margin(area);
        let always = hint_line(&self.always, usize::from(area.width));
        let kept = always.width() as u16;
        let room = area.width - kept.min(area.width);
        always.render(right_of(row(area, 0), room), buf, look);
        hint_line(&self.hints, usize::from(room.saturating_sub(3))).render(row(area, 0), buf, look);
    }
}

/// The first line of the screen: the current place, and at the right badges about the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breadcrumbs {
    /// From the outermost to the current place.
    pub crumbs: Vec<SafeText>,
    /// At the right, in order.
    pub badges: Vec<Badge>,
}

impl Breadcrumbs {
    /// Whether everything is shown in a line.
    pub fn fits(&self, area: Rect, look: &Look) -> bool {
        let badges: usize = self.badges.iter().map(|badge| badge.line().width() + 1).sum();
        let room = usize::from(margin(area).width).saturating_sub(badges);
        self.crumb_line(usize::MAX, look).width() <= room
    }

    /// Draws the line. On a narrow screen outer crumbs are dropped first, then the current one is cut; badges stay.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = margin(area);
        let mut badges = TextLine::default();
        for badge in &self.badges {
            if !badges.runs.is_empty() {
                badges.push_blanks(1);
            }
            badges.append(badge.line());
        }
        let kept = (badges.width() as u16).min(area.width);
        badges.render(right_of(row(area, 0), area.width - kept), buf, look);
        let room = usize::from(area.width - kept).saturating_sub(usize::from(kept > 0));
        let line = self.crumb_line(room, look);
        line.render(Rect { width: room as u16, ..row(area, 0) }, buf, look);
    }

    fn crumb_line(&self, room: usize, look: &Look) -> TextLine {
        let g = look.glyphs;
        let mut first = 0;
        loop {
            let mut line = TextLine::default();
            if first > 0 {
                line.push_glyphs(g.ellipsis, 1, StyleRole::Muted);
            }
            for (index, crumb) in self.crumbs.iter().enumerate().skip(first) {
                if !line.runs.is_empty() {
                    line.append(
                        TextLine::of(" ", StyleRole::Text)
                            .with_glyph(g.crumb, StyleRole::Muted)
                            .with(" ", StyleRole::Text),
                    );
                }
                let is_here = index + 1 == self.crumbs.len();
                line.push(crumb.clone(), if is_here { StyleRole::Heading } else { StyleRole::Muted });
            }
            if line.width() <= room || first + 1 >= self.crumbs.len() {
                return line;
            }
            first += 1;
        }
    }
}

/// A word on a coloured background: ` READ-ONLY `.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Badge {
    /// The word.
    pub word: SafeText,
    /// Role of the word; if the role has no background, a theme without colours puts brackets around the word.
    pub role: StyleRole,
}

impl Badge {
    /// A badge.
    pub fn new(word: impl Into<SafeText>, role: StyleRole) -> Self {
        Self { word: word.into(), role }
    }

    /// The badge as a line.
    pub fn line(&self) -> TextLine {
        TextLine::of(SafeText::join(&[" ".into(), self.word.clone(), " ".into()], ""), self.role)
    }
}

/// One of the tabs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TabLabel {
    /// Name of the tab.
    pub title: SafeText,
    /// Number of items in the tab, when known.
    pub count: Option<u64>,
    /// Whether it is empty or cannot be shown.
    pub off: bool,
}

/// A line of tabs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tabs {
    /// In order.
    pub tabs: Vec<TabLabel>,
    /// The active tab.
    pub active: usize,
}

impl Tabs {
    /// Draws the tabs in the first row of `area`, scrolled so that the active one is fully visible.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let places = self.places(area);
        for (index, place) in &places {
            self.tab_line(*index).render(*place, buf, look);
        }
        if let Some((_, place)) = places.iter().find(|(index, _)| *index == self.active) {
            mark_tab(*place, row(area, 0), buf, look);
        }
        let (line, g) = (row(margin(area), 0), look.glyphs);
        if line.is_empty() || line.width == area.width {
            return;
        }
        if places.first().is_some_and(|(index, _)| *index > 0) {
            look.glyph(line.x.saturating_sub(1), line.y, buf, g.arrow_left, StyleRole::Muted);
        }
        if places.last().is_some_and(|(index, _)| index + 1 < self.tabs.len()) {
            look.glyph(line.right(), line.y, buf, g.arrow_right, StyleRole::Muted);
        }
    }

    /// Lays out the visible tabs: the index and area of each, for drawing and for clicks.
    pub fn places(&self, area: Rect) -> Vec<(usize, Rect)> {
        let area = row(margin(area), 0);
        let widths: Vec<usize> = (0..self.tabs.len()).map(|index| self.tab_line(index).width()).collect();
        let room = usize::from(area.width);
        // Without an active tab there is nothing to scroll to.
        let active = if self.active < self.tabs.len() { self.active } else { 0 };
        let gap = self.gap(room);
        let until_active =
            |first: usize| -> usize { (first..=active).map(|at| widths[at]).sum::<usize>() + gap * (active - first) };
        let mut first = 0;
        while first < active && until_active(first) > room {
            first += 1;
        }
        let mut places = Vec::new();
        let mut at = 0;
        for (index, width) in widths.iter().enumerate().skip(first) {
            at += if index > first { gap } else { 0 };
            let is_cut = at + width > room;
            if at >= room || (is_cut && index != self.active) {
                break;
            }
            let shown = (*width).min(room - at) as u16;
            places.push((index, Rect { x: area.x + at as u16, width: shown, ..area }));
            at += width;
        }
        places
    }

    /// Blank columns before a tab: fewer if all tabs fit then.
    fn gap(&self, room: usize) -> usize {
        let has_counts = self.tabs.iter().any(|tab| tab.count.is_some());
        (LEAST_GAP + usize::from(has_counts)..=TAB_GAP).rev().find(|gap| self.width(*gap) <= room).unwrap_or(TAB_GAP)
    }

    /// Columns of all tabs with this many blanks between two.
    pub fn width(&self, gap: usize) -> usize {
        let tabs: usize = (0..self.tabs.len()).map(|index| self.tab_line(index).width()).sum();
        tabs + gap * self.tabs.len().saturating_sub(1)
    }

    fn tab_line(&self, index: usize) -> TextLine {
        let Some(tab) = self.tabs.get(index) else { return TextLine::default() };
        let role = match (index == self.active, tab.off) {
            (true, _) => StyleRole::Accent,
            (false, true) => StyleRole::Stale,
            (false, false) => StyleRole::Text,
        };
        let mut line = TextLine::of(tab.title.clone(), role);
        if let Some(count) = tab.count {
            line.push_blanks(1);
            line.push(figures::short_count(count), StyleRole::Muted);
        }
        line
    }
}

/// Marks the active tab without colours too: underlined, in ASCII and without colours between brackets.
fn mark_tab(place: Rect, line: Rect, buf: &mut Buffer, look: &Look) {
    buf.set_style(place.intersection(buf.area), Style::new().add_modifier(Modifier::UNDERLINED));
    if !look.glyphs.is_ascii() && !look.theme.is_mono() {
        return;
    }
    let is_free = |x: u16| buf.cell((x, place.y)).is_none_or(|cell| cell.symbol() == " ");
    // If the next tab is that near, there is no room for brackets.
    let is_apart = place.right() + 1 >= line.right() || is_free(place.right() + 1);
    for (x, bracket) in [(place.x.checked_sub(1), "["), (Some(place.right()), "]")] {
        if let Some(x) = x.filter(|x| is_apart && (line.left()..line.right()).contains(x)) {
            look.text(Rect { x, width: 1, ..place }, buf, &bracket.into(), StyleRole::Accent);
        }
    }
}

/// Columns between two tabs.
const TAB_GAP: usize = 3;
/// Least columns between two tabs; one more after a tab that ends with a count.
const LEAST_GAP: usize = 1;

/// A heading inside a pane: `Feedback 3 ─────────────`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Name of the content that follows.
    pub title: SafeText,
    /// Number of items that follow, when known.
    pub count: Option<u64>,
    /// At the right, over the line.
    pub note: TextLine,
}

impl Section {
    /// A heading.
    pub fn new(title: impl Into<SafeText>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The heading as a line of `width` columns.
    pub fn line(&self, width: usize, look: &Look) -> TextLine {
        let mut line = TextLine::of(self.title.clone(), StyleRole::Heading);
        if let Some(count) = self.count {
            line.push_blanks(1);
            line.push(figures::count(count), StyleRole::Muted);
        }
        line.push_blanks(1);
        let note = if self.note.runs.is_empty() { 0 } else { self.note.width() + 1 };
        let rule = width.saturating_sub(line.width() + note);
        line.push_glyphs(look.glyphs.horizontal, rule, StyleRole::Track);
        if note > 0 && rule > 0 {
            line.push_blanks(1);
            line.append(self.note.clone());
        }
        line
    }

    /// Adds a blank line and the heading to lines of `width` columns.
    pub fn add_to(&self, lines: &mut Vec<TextLine>, width: usize, look: &Look) {
        lines.extend([TextLine::default(), self.line(width, look)]);
    }
}

/// A temporary message at the lower right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToastLine {
    /// Text of the message.
    pub text: SafeText,
    /// Tone of the message: how it went.
    pub tone: CardTone,
    /// Key that may be pressed about it (undo).
    pub hint: Option<KeyHint>,
}

impl ToastLine {
    /// Columns in one row.
    pub fn width(&self, look: &Look) -> usize {
        self.line(self.text.clone(), look.glyphs).width()
    }

    /// Number of rows at this width.
    pub fn height(&self, width: u16, look: &Look) -> u16 {
        self.lines(width, look).len() as u16
    }

    fn line(&self, text: SafeText, glyphs: &Glyphs) -> TextLine {
        let mut line = TextLine::of(" ", StyleRole::Text)
            .with_glyph(self.tone.glyph(glyphs), self.tone.role())
            .with(" ", StyleRole::Text)
            .with(text, StyleRole::Text);
        if let Some(hint) = &self.hint {
            line.push_blanks(3);
            line.append(hint.line());
        }
        line.push_blanks(1);
        line
    }

    /// The toast in one row if it fits, else wrapped.
    fn lines(&self, width: u16, look: &Look) -> Vec<TextLine> {
        const LEAST: usize = 12;
        let whole = self.line(self.text.clone(), look.glyphs);
        if whole.width() <= usize::from(width) {
            return vec![whole];
        }
        let around = self.line(SafeText::default(), look.glyphs).width();
        let room = usize::from(width).saturating_sub(around).max(LEAST);
        let mut parts = self.text.wrap(room);
        let mut lines = vec![self.line(parts.next().unwrap_or_default(), look.glyphs)];
        lines.extend(parts.map(|part| TextLine::of("   ", StyleRole::Text).with(part, StyleRole::Text)));
        lines
    }

    /// Draws the toast in the last rows of `area`, at the right, over everything else.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let lines = self.lines(area.width, look);
        let height = (lines.len() as u16).min(area.height);
        let widest = lines.iter().map(TextLine::width).max().unwrap_or(0);
        let width = (widest as u16).min(area.width);
        self.render_whole(right_of(below(area, area.height - height), area.width - width), buf, look);
    }

    /// Draws the toast over all of `place`.
    pub fn render_whole(&self, place: Rect, buf: &mut Buffer, look: &Look) {
        let lines = self.lines(place.width, look);
        Look::clear(place, buf);
        for (index, line) in lines.iter().enumerate().take(usize::from(place.height)) {
            line.render(row(place, index as u16), buf, look);
        }
        look.select(place, buf, StyleRole::SelectionIdle);
    }
}

/// The area without a blank column at either side, if it is wide enough.
fn margin(area: Rect) -> Rect {
    if area.width < 12 { area } else { Rect { x: area.x + 1, width: area.width - 2, ..area } }
}
