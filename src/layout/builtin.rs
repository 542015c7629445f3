//! The layouts that ship with the product.

use include_dir::{Dir, include_dir};

use super::{Layout, LayoutError, parse};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/assets/layouts");

/// Name and text of each shipped layout file, by name.
#[must_use]
pub fn texts() -> Vec<(&'static str, &'static str)> {
    let mut texts: Vec<_> = FILES
        .files()
        .filter(|f| f.path().extension().is_some_and(|e| e == "toml"))
        .filter_map(|f| Some((f.path().file_stem()?.to_str()?, f.contents_utf8()?)))
        .collect();
    texts.sort_unstable();
    texts
}

/// All shipped layouts.
///
/// # Errors
/// What is wrong with a shipped file; a test keeps that from happening.
pub fn all() -> Result<Vec<Layout>, Vec<LayoutError>> {
    texts().into_iter().map(|(name, text)| parse(&format!("{name}.toml"), text)).collect()
}
