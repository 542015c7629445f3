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
    /// The parts that begin with this text, without it and percent-decoded. A column reads the first, a rule every one.
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
    /// Words of the application that are followed by a name: neither the word nor the name is at a position.
    pub named: Vec<String>,
    /// Channels, each with the number of parts that make an id together with its word, regardless of their position.
    pub with: Vec<(String, usize)>,
}

impl Inside {
    /// Only a path into a JSON value.
    pub fn at(path: impl Into<String>) -> Self {
        Inside { path: Some(path.into()), ..Inside::default() }
    }

    /// Whether the stored value itself is meant.
    pub fn is_whole(&self) -> bool {
        self.decode.is_empty() && self.path.is_none() && self.by.is_none()
    }

    /// Whether any part of a text may be the value.
    pub fn is_any_part(&self) -> bool {
        self.by.is_some() && self.part == TextPart::Any
    }

    /// The selected parts of a text, without white space around them. Where any part is, those of a channel are also one part
    /// together with its word.
    pub fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let Some(by) = &self.by else { return vec![text] };
        let all: Vec<&str> = text.split(by.as_str()).map(str::trim).collect();
        let counted = || all.iter().copied().filter(|part| self.counts(part));
        match &self.part {
            TextPart::Any => counted().chain(self.of_channels(text, &all)).filter(|part| !part.is_empty()).collect(),
            TextPart::At(place) => {
                let behind = |words: &[String], at: usize| at > 0 && words.iter().any(|word| word == all[at - 1]);
                let there = (0..all.len()).filter(|at| self.counts(all[*at]));
                let after = there.clone().find(|at| !all[*at].is_empty() && behind(&self.after, *at));
                let found = after.or_else(|| there.filter(|at| !behind(&self.named, *at)).nth(*place));
                self.of_channels(text, &all).next().or(found.map(|at| all[at])).into_iter().collect()
            }
            TextPart::After(start) => {
                counted().filter_map(|part| part.strip_prefix(start.as_str())).map(str::trim).collect()
            }
        }
    }

    /// Whether a part may be the value: it is no word of the application.
    fn counts(&self, part: &str) -> bool {
        let channels = self.with.iter().map(|(word, _)| word);
        !self.except.iter().chain(&self.named).chain(channels).any(|word| word == part)
    }

    /// The ids that begin with the word of a channel and end with the last of its parts.
    fn of_channels<'t>(&self, text: &'t str, all: &[&'t str]) -> impl Iterator<Item = &'t str> {
        let at = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        all.iter().enumerate().filter_map(move |(place, word)| {
            let (_, number) = self.with.iter().find(|(known, _)| known == word)?;
            let last =
                all[place + 1..].iter().filter(|part| self.counts(part) && !part.is_empty()).take(*number).last()?;
            Some(&text[at(word)..at(last) + last.len()])
        })
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
        let named = Inside { named: vec!["agents".to_owned(), "org".to_owned()], ..after.clone() };
        assert_eq!(named.parts("agents.helper.u_77"), ["u_77"]);
        assert_eq!(named.parts("org.acme.agents.users"), Vec::<&str>::new());
        assert_eq!(named.parts("org.acme.agents.users.hiro"), ["hiro"]);
        let person = inside(".", TextPart::At(0), &["memories", "langmem", "profile"]);
        assert_eq!(person.parts("memories.hiro-t.s1"), ["hiro-t"]);
        assert_eq!(person.parts("hiro.profile"), ["hiro"]);
        assert_eq!(person.parts("memories"), Vec::<&str>::new());
        assert_eq!(inside("&", TextPart::After("user_id=".into()), &[]).parts("agent_id=a&user_id=b%26"), ["b%26"]);
        assert_eq!(inside(",", TextPart::After("user:".into()), &[]).parts("x, user:a ,user:b"), ["a", "b"]);
        assert_eq!(inside(",", TextPart::Any, &[]).parts("a,, b "), ["a", "b"]);
        assert_eq!(Inside::default().parts("a.b"), ["a.b"]);
    }

    #[test]
    fn a_channel_is_a_part_of_the_id_behind_it() {
        let of = |part| Inside {
            by: Some(":".to_owned()),
            part,
            except: vec!["chat".to_owned()],
            after: vec!["user".to_owned()],
            with: vec![("telegram".to_owned(), 1), ("slack".to_owned(), 2)],
            ..Inside::default()
        };
        let owner = |text| of(TextPart::At(0)).parts(text).first().copied().unwrap_or_default().to_owned();
        assert_eq!(owner("telegram:4471"), "telegram:4471");
        assert_eq!(owner("chat:telegram:4471:2"), "telegram:4471");
        assert_eq!(owner("user:telegram:chat:4471:2"), "telegram:chat:4471");
        assert_eq!(owner("slack:T024:U999"), "slack:T024:U999");
        assert_eq!(owner("slack:U999"), "slack:U999");
        assert_eq!(owner("telegram"), "");
        assert_eq!(owner("user:ada"), "ada");
        assert_eq!(of(TextPart::Any).parts("chat:telegram:4471:2"), ["4471", "2", "telegram:4471"]);
    }
}
