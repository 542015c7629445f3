//! Place of a value within a stored one: under encodings, at a path of a document, in a part of a text.

/// An encoding that is removed from a stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// A JSON document, as text or as bytes.
    Json,
    /// `MessagePack`.
    Msgpack,
    /// CBOR.
    Cbor,
    /// A Python pickle, which is parsed but never executed.
    Pickle,
    /// A Protocol Buffers message of an unknown schema.
    Protobuf,
    /// Base64 of either alphabet.
    Base64,
    /// A zlib stream.
    Zlib,
    /// Members of gzip.
    Gzip,
    /// Frames of Zstandard.
    Zstd,
    /// Little-endian 32-bit floats.
    Floats,
}

impl Codec {
    /// The words of layout files.
    pub const WORDS: &'static [(&'static str, Codec)] = &[
        ("json", Codec::Json),
        ("msgpack", Codec::Msgpack),
        ("cbor", Codec::Cbor),
        ("pickle", Codec::Pickle),
        ("protobuf", Codec::Protobuf),
        ("base64", Codec::Base64),
        ("zlib", Codec::Zlib),
        ("gzip", Codec::Gzip),
        ("zstd", Codec::Zstd),
        ("floats", Codec::Floats),
    ];

    /// Returns the codec's name in layout files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Codec::WORDS.iter().find(|(_, codec)| *codec == self).map_or("", |(name, _)| name)
    }
}

/// Choice of one part of a text, or of all parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum TextPart {
    /// All parts.
    #[default]
    Any,
    /// The part at this position, from 0.
    At(usize),
    /// The part that begins with this text, without it and percent-decoded.
    After(String),
}

/// Place of a value within a stored one. The default is the stored value itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Inside {
    /// Encodings around it, the outermost first.
    pub decode: Vec<Codec>,
    /// Path into the document, with dots; `*` is every element of a list.
    pub path: Option<String>,
    /// Separator between the parts of a text; `None` if the text is used whole.
    pub by: Option<String>,
    /// Part of the text that holds the value.
    pub part: TextPart,
    /// Parts that do not count.
    pub except: Vec<String>,
    /// Words before the value: if a part follows one of them, it holds the value, regardless of its position.
    pub after: Vec<String>,
}

impl Inside {
    /// Only a path into a JSON value.
    #[must_use]
    pub fn at(path: impl Into<String>) -> Self {
        Inside { path: Some(path.into()), ..Inside::default() }
    }

    /// Whether the stored value itself is meant.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.decode.is_empty() && self.path.is_none() && self.by.is_none()
    }

    /// Whether any part of a text may be the value.
    #[must_use]
    pub fn is_any_part(&self) -> bool {
        self.by.is_some() && self.part == TextPart::Any
    }

    /// The selected parts of a text.
    #[must_use]
    pub fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let Some(by) = &self.by else { return vec![text] };
        let counts = |part: &&str| !self.except.iter().any(|other| other == part);
        let all = || text.split(by.as_str());
        let mut parts = all().filter(counts);
        match &self.part {
            TextPart::Any => parts.filter(|part| !part.is_empty()).collect(),
            TextPart::At(place) => {
                let follows = |(word, part): &(&str, &str)| {
                    self.after.iter().any(|known| known == word) && !part.is_empty() && counts(part)
                };
                let after = all().zip(all().skip(1)).find(follows).map(|(_, part)| part);
                after.or_else(|| parts.nth(*place)).into_iter().collect()
            }
            TextPart::After(start) => parts.find_map(|part| part.strip_prefix(start.as_str())).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_taken_whole_and_words_of_the_application_do_not_count() {
        let inside = |by: &str, part, except: &[&str]| Inside {
            by: Some(by.to_owned()),
            part,
            except: except.iter().map(|e| (*e).to_owned()).collect(),
            ..Inside::default()
        };
        let after = Inside { after: vec!["users".to_owned()], ..inside(".", TextPart::At(0), &["users", "profile"]) };
        assert_eq!(after.parts("org.acme.users.hiro.prefs"), ["hiro"]);
        assert_eq!(after.parts("org.users"), ["org"]);
        assert_eq!(after.parts("users.profile.hiro"), ["hiro"]);
        let person = inside(".", TextPart::At(0), &["memories", "langmem", "profile"]);
        assert_eq!(person.parts("memories.hiro-t.s1"), ["hiro-t"]);
        assert_eq!(person.parts("hiro.profile"), ["hiro"]);
        assert_eq!(person.parts("memories"), Vec::<&str>::new());
        assert_eq!(inside("&", TextPart::After("user_id=".into()), &[]).parts("agent_id=a&user_id=b%26"), ["b%26"]);
        assert_eq!(inside(",", TextPart::Any, &[]).parts("a,,b"), ["a", "b"]);
        assert_eq!(Inside::default().parts("a.b"), ["a.b"]);
    }
}
