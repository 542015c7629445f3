//! The key table of the README is the one that the command table gives.

use std::path::Path;

use mnemoscope::app::command::key_table;

#[test]
fn the_readme_has_the_current_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(path).expect("the README");
    let (_, rest) = readme.split_once("<!-- keys:begin -->").expect("the mark before the keys");
    let (keys, _) = rest.split_once("<!-- keys:end -->").expect("the mark after the keys");
    assert!(keys.trim() == key_table().trim(), "put this between the marks of the README:\n\n{}", key_table());
}
