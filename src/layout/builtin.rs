//! The layouts that ship with the product.

use std::sync::{LazyLock, OnceLock};

use super::parse::requirements;
use super::recognise::unmet;
use super::{Catalog, Engine, Layout, LayoutError, Need, parse};
use crate::ground::assets;

/// Name and text of each shipped layout file, by name.
pub fn texts() -> Vec<(&'static str, &'static str)> {
    let named = |(file, text): (&'static str, _)| Some((file.strip_suffix(".toml")?, text));
    let mut texts: Vec<_> = assets::within("layouts").filter_map(named).collect();
    texts.sort_unstable();
    texts
}

/// All shipped layouts.
///
/// # Errors
/// The errors in a shipped file; a test ensures that there are none.
pub fn all() -> Result<Vec<Layout>, Vec<LayoutError>> {
    SHIPPED.iter().map(ShippedLayout::whole).collect()
}

/// The shipped layout of our own audit trail, which exists beside any other.
pub const TRAIL: &str = "audit-trail";

/// A shipped layout, parsed once per process and only as far as needed.
struct ShippedLayout {
    name: &'static str,
    text: &'static str,
    requires: Vec<Need>,
    whole: OnceLock<Result<Layout, Vec<LayoutError>>>,
}

impl ShippedLayout {
    fn whole(&self) -> Result<Layout, Vec<LayoutError>> {
        self.whole.get_or_init(|| parse(&format!("{}.toml", self.name), self.text)).clone()
    }
}

static SHIPPED: LazyLock<Vec<ShippedLayout>> = LazyLock::new(|| {
    let shipped = |(name, text)| ShippedLayout { name, text, requires: requirements(text), whole: OnceLock::new() };
    texts().into_iter().map(shipped).collect()
});

/// The shipped layouts that fit a database. Of the others only the requirements are parsed.
///
/// # Errors
/// The errors in a shipped file; a test ensures that there are none.
pub fn fitting(engine: Engine, catalog: &Catalog) -> Result<Vec<Layout>, Vec<LayoutError>> {
    // A pattern stands for tables of any name, or for one with another name here: only the whole layout can tell.
    let is_named = |text: &str, need: &Need| {
        !need.table.starts_with('{') && !text.contains(&format!("stands_for = \"{}\"", need.table))
    };
    let is_missing = |text: &str, need: &Need| !catalog.has(need) && is_named(text, need);
    let likely = SHIPPED.iter().filter(|shipped| !shipped.requires.iter().any(|need| is_missing(shipped.text, need)));
    let mut fitting: Vec<Layout> = likely.map(ShippedLayout::whole).collect::<Result<_, _>>()?;
    fitting.retain(|layout| unmet(layout, engine, catalog).is_empty());
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_layout_requires_is_read_without_the_rest() {
        for (name, text) in texts() {
            let layout = parse(name, text).unwrap_or_else(|errors| panic!("{errors:?}"));
            assert_eq!(requirements(text), layout.requires, "{name}");
            assert!(!layout.requires.is_empty(), "{name}");
        }
    }
}
