//! Files that ship inside the program. The build script packs those files of `assets/` that are read at run time.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::DeflateDecoder;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/assets.deflate"));

/// Path and text of each, sorted by path.
static FILES: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let mut all = String::new();
    if DeflateDecoder::new(PACKED).read_to_string(&mut all).is_err() {
        return Vec::new();
    }
    let mut parts = String::leak(all).split_terminator('\0');
    std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).collect()
});

/// Name and text of each file in a folder below `assets/`, such as `layouts`, sorted by name; none for an unknown
/// folder.
pub fn within(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter_map(move |(path, text)| {
        let (parent, name) = path.rsplit_once('/')?;
        (parent == folder).then_some((name, *text))
    })
}

/// Text of the file with that path below `assets/`; empty for an unknown one.
pub fn text(path: &str) -> &'static str {
    FILES.iter().find(|(known, _)| *known == path).map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_packed_as_they_are() {
        let stored = |path: &str| std::fs::read_to_string(format!("{}/assets/{path}", env!("CARGO_MANIFEST_DIR")));
        for (path, text) in FILES.iter() {
            assert_eq!(*text, stored(path).unwrap(), "{path}");
        }
        assert!(within("themes").map(|(name, _)| name).eq(["contrast.toml", "dark.toml", "light.toml", "mono.toml"]));
        assert!(within("layouts").count() > 20);
        assert!(text("migrations/mnemoscope/sqlite/0001_native.sql").contains("CREATE TABLE"));
        assert_eq!(text("themes/none.toml"), "");
    }
}
