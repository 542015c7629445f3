//! Keys of console commands as the settings file binds them: `[keys.PART]`, then `COMMAND = "KEY"` or a list of keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::one_or_several;
use crate::console::core::key_map::KeyBinding;

#[derive(Deserialize)]
struct Keys(#[serde(deserialize_with = "one_or_several")] Vec<String>);

/// The bindings in file order; each with the byte position of its keys, for the line number.
pub(super) fn bound<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<KeyBinding>, D::Error> {
    type Parts = BTreeMap<String, BTreeMap<String, Spanned<Keys>>>;
    let mut bound = Vec::new();
    for (part, commands) in Parts::deserialize(deserializer)? {
        for (command, keys) in commands {
            let line = keys.span().start;
            bound.push(KeyBinding { line, part: part.clone(), command, keys: keys.into_inner().0 });
        }
    }
    bound.sort_by_key(|bound| bound.line);
    Ok(bound)
}
