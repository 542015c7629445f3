//! Frames: panes, and the modal above them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::{
    line::TextLine,
    look::{Look, row},
    text::SafeText,
    theme::StyleRole,
};

/// A pane: a frame with a title at its top left and notes at its top right and bottom right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaneFrame {
    /// Title in the frame's upper edge.
    pub title: SafeText,
    /// After the title, in its own roles: counts, badges.
    pub note: TextLine,
    /// In the lower edge at the right: a position, a state.
    pub foot: TextLine,
    /// Whether the pane has the focus.
    pub focused: bool,
    /// The role of frame and title when something is amiss.
    pub tone: Option<StyleRole>,
}

impl PaneFrame {
    /// A pane with a title.
    pub fn new(title: impl Into<SafeText>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Returns the area inside the frame; the whole area if a frame would leave nothing.
    pub fn inner(area: Rect) -> Rect {
        if has_frame(area) {
            Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
        } else {
            area
        }
    }

    /// Draws the frame and returns its inside.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Rect {
        if !has_frame(area) {
            return area;
        }
        let border = self.tone.unwrap_or(if self.focused { StyleRole::BorderFocused } else { StyleRole::Border });
        outline(area, buf, look, border);
        let title = self.tone.unwrap_or(if self.focused { StyleRole::Accent } else { StyleRole::Heading });
        let mut top = TextLine::of(self.title.clone(), title);
        if !self.note.runs.is_empty() {
            top.push_blanks(1);
            top.append(self.note.clone());
        }
        inset(&top, row(area, 0), buf, look, FrameSide::Left);
        inset(&self.foot, row(area, area.height - 1), buf, look, FrameSide::Right);
        Self::inner(area)
    }
}

/// Whether the area is large enough for a frame.
fn has_frame(area: Rect) -> bool {
    area.width >= 4 && area.height >= 3
}

#[derive(Clone, Copy, PartialEq)]
enum FrameSide {
    Left,
    Right,
}

/// Sets a line into a frame's edge with a blank on either side.
fn inset(line: &TextLine, edge: Rect, buf: &mut Buffer, look: &Look, side: FrameSide) {
    let room = edge.width.saturating_sub(4);
    let width = (line.width() as u16).min(room.saturating_sub(2));
    if line.runs.is_empty() || width == 0 {
        return;
    }
    let x = if side == FrameSide::Left { edge.x + 2 } else { edge.right() - 4 - width };
    let place = Rect { x, width: width + 2, ..edge };
    Look::clear(place, buf);
    line.render(Rect { x: x + 1, width, ..edge }, buf, look);
}

fn outline(area: Rect, buf: &mut Buffer, look: &Look, role: StyleRole) {
    let g = look.glyphs;
    let (left, top, right, bottom) = (area.x, area.y, area.right() - 1, area.bottom() - 1);
    let edges = [Rect { width: 1, ..area }, Rect { x: right, width: 1, ..area }];
    for y in [top, bottom] {
        look.fill(Rect { y, height: 1, ..area }, buf, g.horizontal, role);
    }
    for edge in edges {
        look.fill(edge, buf, g.vertical, role);
    }
    for (x, y, corner) in [
        (left, top, g.top_left),
        (right, top, g.top_right),
        (left, bottom, g.bottom_left),
        (right, bottom, g.bottom_right),
    ] {
        look.glyph(x, y, buf, corner, role);
    }
    // Without colours, underlined lines would look like rungs.
    let plain = Style::new().remove_modifier(Modifier::UNDERLINED);
    edges.into_iter().for_each(|edge| buf.set_style(edge.intersection(buf.area), plain));
    for y in [top, bottom] {
        buf.set_style(Rect { y, height: 1, ..area }.intersection(buf.area), plain);
    }
}

/// A pane over everything else, in the middle. If it does not fit with a margin, it takes the whole screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modal {
    /// The pane itself; drawn as focused.
    pub pane: PaneFrame,
    /// Columns wanted, frame included.
    pub width: u16,
    /// Rows wanted, frame included.
    pub height: u16,
}

impl Modal {
    /// Returns the area of the modal on this screen, frame included.
    pub fn area(&self, screen: Rect) -> Rect {
        // A few columns beside it would be useless.
        let width = if self.width + 8 > screen.width { screen.width } else { self.width };
        let height = if self.height + 2 > screen.height { screen.height } else { self.height };
        if screen.width < 60 || screen.height < 14 {
            return screen;
        }
        Rect { x: screen.x + (screen.width - width) / 2, y: screen.y + (screen.height - height) / 2, width, height }
    }

    /// Clears the modal's area, draws its frame and returns its inside, with a margin if there is room.
    pub fn render(&self, screen: Rect, buf: &mut Buffer, look: &Look) -> Rect {
        let area = self.area(screen);
        Look::clear(area, buf);
        let pane = PaneFrame { focused: true, ..self.pane.clone() };
        let inner = pane.render(area, buf, look);
        if inner.width < 20 {
            return inner;
        }
        Rect { x: inner.x + 1, width: inner.width - 2, ..inner }
    }
}
