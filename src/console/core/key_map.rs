//! Map from keys to commands: the table's keys, and those that the settings put in their place.

use std::collections::{BTreeMap, BTreeSet};

use super::command::{COMMANDS, CommandId, CommandScope, ConsoleCommand};
use super::key::{CONFIRM, Key};
use crate::memory::nearest::unknown;

/// The keys of a command as the settings write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBinding {
    /// Line of the settings file, from 1.
    pub line: usize,
    /// Name of the part of docs/keys.md that the command is in, such as `lists`.
    pub part: String,
    /// Name of the command there, such as `clear-filter`.
    pub command: String,
    /// Keys of the command, each a key or several separated by blanks, pressed one after the other; empty to leave it
    /// without keys.
    pub keys: Vec<String>,
}

/// An invalid key binding: its place, and the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct KeyBindingError {
    /// Line of the settings file, from 1.
    pub line: usize,
    /// Description of the error, and of the valid spellings.
    pub problem: String,
}

/// Meaning of pressed keys.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyMeaning {
    /// A complete command.
    Command(CommandId),
    /// The keys begin these sequences: the next key and the command.
    Prefix(Vec<(Key, CommandId)>),
    /// The keys have no meaning.
    Nothing,
}

/// Keys of the commands whose keys differ from the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyMap {
    other: BTreeMap<CommandId, Vec<String>>,
}

impl KeyMap {
    /// Replaces the table's keys by those of the bindings. A key given to a command is taken from other commands on the
    /// same screens.
    ///
    /// # Errors
    /// The first binding that names no command or no key, uses a key twice or the one that confirms changes, or leaves no key
    /// for the palette or for quitting.
    pub fn with(bindings: &[KeyBinding]) -> Result<Self, KeyBindingError> {
        let mut map = KeyMap::default();
        let mut own: Vec<(&ConsoleCommand, Vec<Key>)> = Vec::new();
        for binding in bindings {
            let wrong = |problem: String| KeyBindingError { line: binding.line, problem };
            let command = named(&binding.part, &binding.command).map_err(wrong)?;
            for written in &binding.keys {
                let keys = pressed(written).map_err(wrong)?;
                let twin = own.iter().find(|(other, known)| meet(command, other) && overlap(known, &keys));
                if let Some((other, _)) = twin {
                    return Err(wrong(format!("`{written}` is already assigned to `{}`", slug(other.title))));
                }
                own.push((command, keys));
            }
            if binding.keys.is_empty() && matches!(command.id, CommandId::Palette | CommandId::Quit) {
                return Err(wrong(format!("`{}` needs a key", binding.command)));
            }
            map.other.insert(command.id, binding.keys.clone());
        }
        let bound: BTreeSet<CommandId> = map.other.keys().copied().collect();
        for command in COMMANDS.iter().filter(|command| !bound.contains(&command.id)) {
            let is_taken = |written: &str| {
                let keys: Vec<Key> = sequence(written).flatten().collect();
                own.iter().any(|(other, known)| meet(command, other) && overlap(known, &keys))
            };
            if command.keys.iter().any(|written| is_taken(written)) {
                let left = command.keys.iter().filter(|written| !is_taken(written));
                map.other.insert(command.id, left.map(|written| (*written).to_owned()).collect());
            }
        }
        map.keeps_the_way_out(bindings)?;
        Ok(map)
    }

    /// Refuses to leave quitting, or the palette, which reaches every command, without a key.
    fn keeps_the_way_out(&self, bindings: &[KeyBinding]) -> Result<(), KeyBindingError> {
        let lost =
            [CommandId::Palette, CommandId::Quit].into_iter().find(|id| self.other.get(id).is_some_and(Vec::is_empty));
        let (Some(lost), Some(last)) = (lost.and_then(super::command::command), bindings.last()) else { return Ok(()) };
        Err(KeyBindingError { line: last.line, problem: format!("`{}` would have no key left", slug(lost.title)) })
    }

    /// The keys of a command; several keys separated by a blank are pressed one after the other.
    pub fn keys<'s>(&'s self, command: &ConsoleCommand) -> impl Iterator<Item = &'s str> + use<'s> {
        let other = self.other.get(&command.id);
        let table = if other.is_some() { &[] } else { command.keys };
        other.into_iter().flatten().map(String::as_str).chain(table.iter().copied())
    }

    /// Looks up the meaning of `keys`, pressed one after the other; `screen` is the scope of a screen of its own kind.
    pub fn meaning(&self, keys: &[Key], screen: Option<CommandScope>) -> KeyMeaning {
        let mut longer = Vec::new();
        // A screen of its own kind has its own commands first, and those of other such screens do not apply.
        let own = COMMANDS.iter().filter(|command| Some(command.scope) == screen);
        let shared = COMMANDS.iter().filter(|command| command.scope.is_shared());
        for command in own.chain(shared) {
            for written in self.keys(command) {
                let wanted: Vec<Option<Key>> = sequence(written).collect();
                let begins = wanted.iter().zip(keys).all(|(wanted, key)| *wanted == Some(*key));
                if begins && wanted.len() == keys.len() {
                    return KeyMeaning::Command(command.id);
                }
                // A screen's own meaning of a key comes before its general meaning.
                if let (true, Some(Some(next))) = (begins, wanted.get(keys.len()))
                    && longer.iter().all(|(known, _)| known != next)
                {
                    longer.push((*next, command.id));
                }
            }
        }
        if longer.is_empty() { KeyMeaning::Nothing } else { KeyMeaning::Prefix(longer) }
    }
}

/// The keys of a sequence such as `y c`.
pub(super) fn sequence(keys: &str) -> impl Iterator<Item = Option<Key>> {
    keys.split(' ').map(Key::parse)
}

/// A title as a name in the settings: `Copy as CSV` is `copy-as-csv`.
pub fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

fn named(part: &str, name: &str) -> Result<&'static ConsoleCommand, String> {
    let parts = CommandScope::ALL.iter().map(|scope| slug(scope.title()));
    let parts: Vec<String> = parts.collect();
    let Some(scope) = parts.iter().position(|known| known == part).map(|at| CommandScope::ALL[at]) else {
        return Err(unknown("part of the keys", part, parts.iter().map(String::as_str)));
    };
    let commands = || COMMANDS.iter().filter(move |command| command.scope == scope);
    commands().find(|command| slug(command.title) == name).ok_or_else(|| {
        let names: Vec<String> = commands().map(|command| slug(command.title)).collect();
        unknown(&format!("command of `{part}`"), name, names.iter().map(String::as_str))
    })
}

fn pressed(written: &str) -> Result<Vec<Key>, String> {
    const EXAMPLES: &str = "`j`, `G`, `enter`, `f5`, `ctrl-d`, `alt-left`, or several such as `y c`";
    let keys: Option<Vec<Key>> = sequence(written).collect();
    let keys = keys.ok_or_else(|| format!("`{written}` is not a key: write {EXAMPLES}"))?;
    if keys.iter().any(|key| key.typed() == Some(CONFIRM)) {
        return Err(format!("`{CONFIRM}` confirms changes and can do nothing else"));
    }
    Ok(keys)
}

/// Whether the same key can trigger both on one screen: a screen's own commands come before general ones.
fn meet(one: &ConsoleCommand, other: &ConsoleCommand) -> bool {
    one.id != other.id && (one.scope == other.scope || one.scope.is_shared() && other.scope.is_shared())
}

fn overlap(one: &[Key], other: &[Key]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(part: &str, command: &str, keys: &[&str]) -> KeyBinding {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        KeyBinding { line: 7, part: part.to_owned(), command: command.to_owned(), keys }
    }

    fn key(text: &str) -> Vec<Key> {
        sequence(text).map(Option::unwrap).collect()
    }

    #[test]
    fn a_key_of_ones_own_takes_the_place_of_the_tables_and_is_taken_from_others() {
        let map = KeyMap::with(&[binding("lists", "filter", &["f5", "i"])]).unwrap();
        assert_eq!(map.meaning(&key("i"), None), KeyMeaning::Command(CommandId::Filter));
        assert_eq!(map.meaning(&key("f5"), None), KeyMeaning::Command(CommandId::Filter));
        assert_eq!(map.meaning(&key("/"), None), KeyMeaning::Nothing);
        assert_eq!(map.meaning(&key("r"), None), KeyMeaning::Command(CommandId::Refresh), "its other key stays");
    }

    #[test]
    fn a_key_alone_takes_the_sequences_that_begin_with_it() {
        let map = KeyMap::with(&[binding("rows", "copy-json", &["y"])]).unwrap();
        assert_eq!(map.meaning(&key("y"), None), KeyMeaning::Command(CommandId::CopyJson));
    }

    #[test]
    fn what_cannot_be_bound_is_said_with_its_line_and_the_nearest_name() {
        let refused = |bindings: &[KeyBinding]| KeyMap::with(bindings).unwrap_err();
        let wrong = [
            (vec![binding("list", "filter", &["i"])], "`lists`"),
            (vec![binding("lists", "filtre", &["i"])], "`filter`"),
            (vec![binding("lists", "filter", &["entre"])], "is not a key"),
            (vec![binding("lists", "filter", &[&CONFIRM.to_string()])], "confirms changes"),
            (
                vec![binding("lists", "filter", &["i"]), binding("lists", "sort", &["i x"])],
                "already assigned to `filter`",
            ),
            (vec![binding("everywhere", "quit", &[])], "needs a key"),
            (vec![binding("lists", "filter", &[":", "ctrl-p"])], "`palette` would have no key left"),
        ];
        for (bindings, says) in wrong {
            let error = refused(&bindings);
            assert!(error.line == 7 && error.problem.contains(says), "{error:?}");
        }
    }

    #[test]
    fn every_command_is_named_once_in_its_part() {
        for command in COMMANDS {
            let found = named(&slug(command.scope.title()), &slug(command.title)).map(|found| found.id);
            assert_eq!(found, Ok(command.id), "{}", command.title);
        }
    }

    #[test]
    fn a_prefix_tells_what_may_follow() {
        let map = KeyMap::default();
        let KeyMeaning::Prefix(next) = map.meaning(&key("y"), None) else { panic!() };
        assert!(next.contains(&(Key::parse("c").unwrap(), CommandId::CopyCommand)));
        assert_eq!(map.meaning(&key("y y"), None), KeyMeaning::Command(CommandId::CopyId));
        assert_eq!(map.meaning(&key("y x"), None), KeyMeaning::Nothing);
    }
}
