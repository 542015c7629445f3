//! The members of an object as they are in its text: repeated keys too, and values that no number type holds.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Keys and values of a JSON object in their order, each value as its text; none when the text is no object.
#[must_use]
pub fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(text).ok().map(|members| members.0)
}

/// The text of the first of some names whose member is one; of a name that occurs twice the last member counts.
#[must_use]
pub fn member_text(members: &[(String, &RawValue)], names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let (_, value) = members.iter().rfind(|(key, _)| key == name)?;
        serde_json::from_str(value.get()).ok()
    })
}

struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Collect).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_and_long_numbers_stay_as_they_stand() {
        let found = members(r#"{"a": 1e400, "b": [1], "a": 123456789012345678901234567890}"#).unwrap();
        let texts: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.get())).collect();
        assert_eq!(texts, [("a", "1e400"), ("b", "[1]"), ("a", "123456789012345678901234567890")]);
        assert!(members("[1]").is_none());
    }
}
