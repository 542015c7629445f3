//! Commands to recommend, ready to paste into a shell: the only place that quotes.

/// Quotes a word for a shell if needed.
pub fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

/// Subcommands that may stand in place of an id, as in `purge verify`.
const COMMANDS: [&str; 3] = ["verify", "retract", "help"];

/// Whether one of some ids could be taken for an option or a subcommand.
pub(super) fn needs_dashes(ids: &[&str]) -> bool {
    ids.iter().any(|id| id.starts_with('-') || COMMANDS.contains(id))
}

/// Fills in the ids for `$id` in a command. Ids that could be taken for something else are put at the end after `--`.
pub fn filled(command: &str, ids: &[&str]) -> String {
    let quoted: Vec<String> = ids.iter().map(|id| quoted(id)).collect();
    let quoted = quoted.join(" ");
    if command.contains("$id") && needs_dashes(ids) {
        return format!("{} -- {quoted}", command.replace(" $id", ""));
    }
    command.replace("$id", &quoted)
}

/// Arguments that name the current database on a command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invocation {
    words: Vec<String>,
}

impl Invocation {
    /// Takes the arguments between the program's name and the command: `-d`, `--profile` and `--layout` with their
    /// values.
    pub fn of(words: Vec<String>) -> Self {
        Invocation { words }
    }

    /// Uses the location of the database, and the requested layouts.
    pub fn at(location: &str, layouts: &[String]) -> Self {
        let named = ["-d", location].into_iter();
        let layouts = layouts.iter().flat_map(|name| ["--layout", name]);
        Invocation::of(named.chain(layouts).map(str::to_owned).collect())
    }

    /// Replaces an ambiguous name of the database by another one.
    pub fn naming(&self, less: &str, name: &str) -> Self {
        let renamed = |word: &String| if word == less { name.to_owned() } else { word.clone() };
        Invocation { words: self.words.iter().map(renamed).collect() }
    }

    /// The command line of a command and its arguments.
    pub fn line<'w>(&'w self, words: impl IntoIterator<Item = &'w str>) -> String {
        let before = std::iter::once("mnemoscope").chain(self.words.iter().map(String::as_str));
        shell_words::join(before.chain(words))
    }

    /// The command line of a command about rows or people, with its options. Ids that could be taken for something else
    /// are put after `--`.
    pub fn about(&self, command: &[&str], ids: &[&str], options: &[&str]) -> String {
        let apart: &[&str] = if needs_dashes(ids) { &["--"] } else { &[] };
        let words = if apart.is_empty() { [command, ids, options] } else { [command, options, apart] };
        let ids = if apart.is_empty() { &[] } else { ids };
        self.line(words.into_iter().flatten().chain(ids).copied())
    }

    /// The command line of a command whose words are already quoted.
    pub fn before(&self, quoted: &str) -> String {
        format!("{} {quoted}", self.line([]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_line_apart_into_the_same_words() {
        let invocation = Invocation::at("it's a $(file).db", &["my layout.toml".to_owned()]);
        let line = invocation.line(["show", "episode", "", "ä b", "a\nb"]);
        let words = shell_words::split(&line).unwrap();
        let expected = [
            "mnemoscope", "-d", "it's a $(file).db", "--layout", "my layout.toml", "show", "episode", "", "ä b", "a\nb",
        ];
        assert_eq!(words, expected);
        assert_eq!(Invocation::at("a-1.db", &[]).line(["undo", "5"]), "mnemoscope -d a-1.db undo 5");
    }

    #[test]
    fn ids_that_look_like_options_stand_behind_two_dashes() {
        let invocation = Invocation::default();
        assert_eq!(invocation.about(&["link"], &["a", "b"], &["--apply"]), "mnemoscope link a b --apply");
        assert_eq!(invocation.about(&["link"], &["a", "-b"], &["--apply"]), "mnemoscope link --apply -- a -b");
        assert_eq!(filled("profile set $id --window 200", &["p 1"]), "profile set 'p 1' --window 200");
        assert_eq!(filled("profile set $id --window 200", &["-p"]), "profile set --window 200 -- -p");
        assert_eq!(filled("migrate", &["-p"]), "migrate");
        // A person may have the name of a subcommand.
        assert_eq!(invocation.about(&["purge"], &["verify"], &["--resume"]), "mnemoscope purge --resume -- verify");
    }
}
