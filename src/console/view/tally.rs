//! Names with figures: aligned below each other, or as a tree with its branches drawn.

use crate::change::plan::erasure::Branch;
use crate::ui::chart::meter;
use crate::ui::{Look, SafeText, StyleRole, TextLine, figures};

/// The widest column of names.
const WIDEST: usize = 56;
/// Columns of a figure.
const FIGURE: usize = 9;
/// Columns of a bar.
const BAR: usize = 24;

/// Names with figures, the figures aligned; the rest of a line follows them.
pub fn tally(rows: &[(TextLine, u64, TextLine)], width: usize, look: &Look) -> Vec<TextLine> {
    let room = width.saturating_sub(FIGURE + 1).min(WIDEST);
    let widest = rows.iter().map(|(name, ..)| name.width()).max().unwrap_or(0).min(room);
    let lines = rows.iter().map(|(name, figure, rest)| {
        let mut line = fitted(name, widest, look);
        line.push(figures::column(*figure, FIGURE), StyleRole::Number);
        if !rest.runs.is_empty() && line.width() + 2 + rest.width() <= width {
            line.push_blanks(2);
            line.append(rest.clone());
        }
        line
    });
    lines.collect()
}

/// A line of exactly this many columns: its last run is cut if it is longer.
fn fitted(line: &TextLine, width: usize, look: &Look) -> TextLine {
    let mut fitted = TextLine::default();
    for run in &line.runs {
        let room = width.saturating_sub(fitted.width());
        fitted.push(look.fit(&run.text, room), run.role);
    }
    fitted.push_blanks(width.saturating_sub(fitted.width()));
    fitted
}

/// Tables with deleted rows, each below the one that leads to it, with their share as bars.
pub fn tree(root: &str, branches: &[Branch], width: usize, look: &Look) -> Vec<TextLine> {
    let total: u64 = branches.iter().map(|branch| branch.rows as u64).sum();
    let most = branches.iter().map(|branch| branch.rows).max().unwrap_or(0).max(1);
    let whole = TextLine::of(SafeText::limited(root, 50), StyleRole::Heading);
    let mut rows = vec![(whole, total, TextLine::default())];
    for (at, branch) in branches.iter().enumerate() {
        let mut name = TextLine::of(stem(branches, at, look), StyleRole::Border);
        name.push(SafeText::limited(&branch.table, 50), StyleRole::Text);
        rows.push((name, branch.rows as u64, meter(branch.rows as f64 / most as f64, BAR, StyleRole::Bad, look)));
    }
    tally(&rows, width, look)
}

fn stem(branches: &[Branch], at: usize, look: &Look) -> SafeText {
    let g = look.glyphs;
    let depth = branches[at].depth;
    // Whether something follows at that depth before the tree turns back beyond it.
    let continues = |depth: usize| {
        let mut below = branches[at + 1..].iter().take_while(|branch| branch.depth >= depth);
        below.any(|branch| branch.depth == depth)
    };
    let blank = || SafeText::from("   ");
    let lead = |glyph, more| SafeText::join(&[SafeText::glyphs(glyph, 1), more], "");
    let above = (0..depth).map(|depth| if continues(depth) { lead(g.vertical, "  ".into()) } else { blank() });
    let own = if continues(depth) { g.branch } else { g.last_branch };
    let own = lead(own, SafeText::join(&[SafeText::glyphs(g.horizontal, 1), " ".into()], ""));
    SafeText::join(&above.chain([own]).collect::<Vec<_>>(), "")
}
