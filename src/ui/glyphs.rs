//! Every glyph the program draws on its own, in one table, each with an ASCII twin. All are one column wide.

/// A glyph of the program itself: only this file creates them, so none can come from stored text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Glyph(char);

impl Glyph {
    /// The character to draw.
    pub fn get(self) -> char {
        self.0
    }
}

/// Turns a table of `name: unicode, ascii` into the struct and its two values.
macro_rules! glyphs {
    ($($(#[doc = $doc:literal])+ $name:ident: $unicode:literal, $ascii:literal;)+) => {
        /// The set of glyphs to draw with, chosen once by the terminal's abilities.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Glyphs {
            ascii: bool,
            $($(#[doc = $doc])+ pub $name: Glyph,)+
            /// Vertical fill of a cell in eighths, from empty to full.
            pub rising: [Glyph; 9],
            /// Horizontal fill of a cell in eighths, from the left.
            pub filling: [Glyph; 9],
            /// Intensity, from none to most.
            pub shades: [Glyph; 5],
            /// Fills that differ without colour, one for each chart series.
            pub fills: [Glyph; 6],
        }

        static UNICODE: Glyphs = Glyphs {
            ascii: false,
            $($name: Glyph($unicode),)+
            rising: row([' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']),
            filling: row([' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█']),
            shades: row(['·', '◔', '◑', '◕', '●']),
            fills: row(['█', '▓', '▒', '░', '▚', '≡']),
        };

        static ASCII: Glyphs = Glyphs {
            ascii: true,
            $($name: Glyph($ascii),)+
            rising: row([' ', '.', '.', ':', '-', '=', '+', '*', '#']),
            filling: row([' ', ' ', ' ', ' ', '-', '-', '=', '=', '#']),
            shades: row(['.', '-', '+', '*', '#']),
            fills: row(['#', '=', '+', '-', '%', ':']),
        };

        impl Glyphs {
            /// Every single glyph with its ASCII twin, by name.
            pub fn twins() -> Vec<(&'static str, Glyph, Glyph)> {
                vec![$((stringify!($name), UNICODE.$name, ASCII.$name),)+]
            }
        }
    };
}

const fn row<const N: usize>(chars: [char; N]) -> [Glyph; N] {
    let mut glyphs = [Glyph(' '); N];
    let mut index = 0;
    while index < N {
        glyphs[index] = Glyph(chars[index]);
        index += 1;
    }
    glyphs
}

glyphs! {
    /// A horizontal line.
    horizontal: '─', '-';
    /// A vertical line.
    vertical: '│', '|';
    /// The corner of a frame, top left.
    top_left: '╭', '+';
    /// The corner of a frame, top right.
    top_right: '╮', '+';
    /// The corner of a frame, bottom left.
    bottom_left: '╰', '+';
    /// The corner of a frame, bottom right.
    bottom_right: '╯', '+';
    /// A branch to the right with more below: tree rows, axes.
    branch: '├', '|';
    /// The last branch to the right.
    last_branch: '└', '`';
    /// A tick at the left of an axis.
    tick: '┤', '|';
    /// A line with a faint rhythm: grids, the present.
    dotted: '┊', ':';
    /// A horizontal line with a faint rhythm.
    dashed: '┄', '.';
    /// A stretch of time that was squeezed.
    gap: '⋯', '~';
    /// The left edge of the row the cursor is on.
    cursor: '▌', '>';
    /// Marked for batch work.
    marked: '●', '*';
    /// A full dot: on, yes, live.
    dot: '●', '*';
    /// An empty dot: off, no, none.
    ring: '○', 'o';
    /// Half: partly so.
    half: '◐', '%';
    /// A diamond: something of note.
    diamond: '◆', '*';
    /// An empty diamond.
    hollow_diamond: '◇', 'o';
    /// Up: more, better, ascending.
    up: '▲', '^';
    /// Down: less, worse, descending.
    down: '▼', 'v';
    /// Done, confirmed, good.
    check: '✓', '+';
    /// Failed, rejected, bad.
    cross: '✗', 'x';
    /// Changed, corrected.
    edit: '✎', 'e';
    /// Undone.
    undo: '↶', 'u';
    /// Attention.
    warning: '!', '!';
    /// Information.
    info: '◆', 'i';
    /// Locked: cannot be changed.
    lock: '■', '#';
    /// A bullet in a list.
    bullet: '•', '*';
    /// A folded item.
    folded: '▸', '+';
    /// An unfolded item.
    unfolded: '▾', '-';
    /// An arrow to the left.
    arrow_left: '←', '<';
    /// An arrow to the right.
    arrow_right: '→', '>';
    /// An arrow up: more above.
    arrow_up: '↑', '^';
    /// An arrow down: more below.
    arrow_down: '↓', 'v';
    /// Between the steps of a path.
    crumb: '›', '>';
    /// Between small things in a line.
    separator: '·', '-';
    /// Text was cut here.
    ellipsis: '…', '~';
    /// The filled part of a bar.
    bar: '━', '=';
    /// The empty part of a bar.
    track: '─', '-';
    /// A thick horizontal bar with space above it, so that bars below each other stay apart.
    slab: '▆', '#';
    /// A day or cell of a map of intensities.
    cell: '■', '#';
    /// The movable part of a scrollbar.
    thumb: '┃', '#';
    /// A scrollbar's way.
    rail: '│', '|';
    /// About this many.
    about: '~', '~';
    /// From one to another.
    range: '–', '-';
    /// An empty value.
    none: '—', '-';
}

impl Glyphs {
    /// Box drawing, blocks, Braille and arrows. No emoji: their widths differ between terminals.
    pub fn unicode() -> &'static Self {
        &UNICODE
    }

    /// Printable ASCII only.
    pub fn ascii() -> &'static Self {
        &ASCII
    }

    /// Whether only ASCII may be drawn.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// A cell of 2 x 4 dots: bit `4 * column + row`, rows from the top. In ASCII only the upper and lower half show.
    pub fn dots(&self, bits: u8) -> Glyph {
        if !self.ascii {
            return Glyph(char::from_u32(0x2800 + u32::from(braille(bits))).unwrap_or(' '));
        }
        let (upper, lower) = (bits & 0b0011_0011 != 0, bits & 0b1100_1100 != 0);
        Glyph(match (upper, lower) {
            (false, false) => ' ',
            (true, false) => '\'',
            (false, true) => '.',
            (true, true) => ':',
        })
    }
}

/// Our dot order (two columns of four) in the order of Unicode's Braille patterns (three rows first, then the fourth).
fn braille(bits: u8) -> u8 {
    const ORDER: [u8; 8] = [0, 1, 2, 6, 3, 4, 5, 7];
    ORDER.iter().enumerate().filter(|(ours, _)| bits >> ours & 1 == 1).map(|(_, theirs)| 1 << theirs).sum()
}
