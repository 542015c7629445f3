//! Iterates over the strings of a JSON text without parsing the whole.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A string of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonText<'t> {
    /// The key of a member.
    Key(&'t str),
    /// The value of a member, with its key.
    Member(&'t str, &'t str),
    /// An item of a list, or the whole text.
    Item(&'t str),
}

impl<'t> JsonText<'t> {
    /// The string itself, whatever it is.
    pub fn text(self) -> &'t str {
        let (JsonText::Key(text) | JsonText::Member(_, text) | JsonText::Item(text)) = self;
        text
    }
}

/// Callback for a string.
type Look<'f> = &'f mut dyn FnMut(JsonText<'_>);

/// Passes on every key and string of a JSON text, in order, up to the first syntax error.
///
/// # Errors
/// The parser's error, if the text is not strict JSON.
pub fn each_text(text: &str, look: Look<'_>) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Strings { key: None, look }.deserialize(&mut reader)?;
    reader.end()
}

struct Strings<'k, 'f> {
    key: Option<&'k str>,
    look: Look<'f>,
}

impl<'de> DeserializeSeed<'de> for Strings<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strings<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        (self.look)(self.key.map_or(JsonText::Item(text), |key| JsonText::Member(key, text)));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Strings { key: None, look: &mut *self.look })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<String>()? {
            (self.look)(JsonText::Key(&key));
            members.next_value_seed(Strings { key: Some(&key), look: &mut *self.look })?;
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_comes_with_the_key_that_it_stands_under() {
        let mut seen = Vec::new();
        let text = r#"{"a": "x\n", "b": ["y", {"c": "z"}, 1, -1, 0.5, true, null]}"#;
        each_text(text, &mut |text| seen.push(format!("{text:?}"))).unwrap();
        assert_eq!(seen.join(" "), r#"Key("a") Member("a", "x\n") Key("b") Item("y") Key("c") Member("c", "z")"#);
        assert!(each_text("[1, ", &mut |_| ()).is_err());
    }
}
