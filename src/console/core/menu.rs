//! Menus to choose from by a few letters, and lines to write: plain data.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::command::{CommandAsk, CommandId, meanings};
use super::input::Input;
use super::jobs::LeavingChoice;
use super::message::Destination;
use crate::change::operation::Operation;
use crate::console::screens::recall::messages::RecallPick;
use crate::memory::kept::KeptPlace;
use crate::memory::{Entity, Row};

/// Effect of choosing an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum MenuChoice {
    /// Carries out a command.
    Command(CommandId),
    /// Goes to a place.
    Go(Destination),
    /// Orders the list by a column.
    Sort(&'static str),
    /// Opens the form on a feedback row.
    Edit(Box<Row>),
    /// Plans an operation.
    Propose(Box<Operation>),
    /// Selects a theme.
    Theme(String),
    /// Goes to a saved place.
    Place(Box<KeptPlace>),
    /// Deletes the saved place with this name.
    ForgetPlace(String),
    /// Opens a database by its profile, path or address.
    OpenDatabase(String),
    /// Shows the open database with this number.
    ShowDatabase(u64),
    /// Closes the current database, or leaves it open.
    CloseDatabase(bool),
    /// Asks for a path or a URL.
    NameDatabase,
    /// Ends the selected job, or leaves it alone.
    EndJob(bool),
    /// Leaves the console while a job runs.
    Leave(LeavingChoice),
    /// An entry of the recall screen's menus.
    Recall(RecallPick),
}

/// An entry of a menu.
#[derive(Debug, Clone, PartialEq)]
pub struct MenuItem {
    /// Label of the entry.
    pub label: String,
    /// More about it.
    pub note: String,
    /// Keys of the same command.
    pub keys: String,
    /// Effect of choosing the entry.
    pub choice: MenuChoice,
    /// Reason why the entry cannot be chosen.
    pub unavailable: Option<String>,
}

impl MenuItem {
    /// An entry that can be chosen.
    pub fn new(label: impl Into<String>, note: impl Into<String>, choice: MenuChoice) -> Self {
        MenuItem { label: label.into(), note: note.into(), keys: String::new(), choice, unavailable: None }
    }

    /// Whether the entry changes the memory without showing a plan first. If only the beginning of its name is typed,
    /// other entries come first.
    fn writes_at_once(&self) -> bool {
        matches!(self.choice, MenuChoice::Command(CommandId::Change(CommandAsk::Signal(_))))
    }
}

/// Kind of match between the typed text and an entry, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchSense {
    /// The typed text is the label.
    Label,
    /// The typed words are words of the label.
    WholeWords,
    /// Words of the label begin with the typed words.
    Words,
    /// The typed words are synonyms of the entry.
    Meaning,
    /// Words of the note begin with the typed words.
    Note,
    /// The letters of the text occur in the entry in this order.
    Letters,
}

/// A text in the form used for matching, however settings and columns spell it: `audit-trails`, `parent_id`.
fn spelled_out(text: &str) -> String {
    text.replace(['-', '_'], " ")
}

/// Finds how the typed text matches an entry; `None` if it does not. `letters` is true if the entry has the letters in
/// order.
fn sense(typed: &str, item: &MenuItem, letters: bool) -> Option<MatchSense> {
    let wanted: Vec<String> = spelled_out(typed).split_whitespace().map(str::to_lowercase).collect();
    let all_in = |text: &str, is_word: fn(&str, &str) -> bool| {
        let text = text.to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        wanted.iter().all(|wanted| words.iter().any(|word| is_word(word, wanted)))
    };
    let in_words = |text: &str| all_in(text, |word, wanted| word.starts_with(wanted));
    // A few letters out of a long sentence find everything.
    let telling = wanted.iter().all(|word| word.chars().count() > 1);
    let means = match &item.choice {
        MenuChoice::Command(id) => meanings(*id),
        _ => "",
    };
    if spelled_out(&item.label).eq_ignore_ascii_case(&spelled_out(typed)) {
        Some(MatchSense::Label)
    } else if all_in(&item.label, |word, wanted| word == wanted) {
        Some(MatchSense::WholeWords)
    } else if in_words(&item.label) {
        Some(MatchSense::Words)
    } else if telling && in_words(means) {
        Some(MatchSense::Meaning)
    } else if telling && in_words(&item.note) {
        Some(MatchSense::Note)
    } else {
        letters.then_some(MatchSense::Letters)
    }
}

/// A list of entries, narrowed by typing.
#[derive(Debug, Clone, PartialEq)]
pub struct Menu {
    /// Title that names the choice.
    pub title: String,
    /// All entries.
    pub items: Vec<MenuItem>,
    /// Text typed so far.
    pub input: Input,
    /// Position of the selected entry among those that match.
    pub selected: usize,
    /// The typed text as an entry of its own, once it is known to be the name of something.
    pub named: Option<MenuItem>,
}

impl Menu {
    /// Whether databases are listed, which can be named by typing.
    pub fn names_databases(&self) -> bool {
        self.items.iter().any(|item| item.choice == MenuChoice::NameDatabase)
    }

    /// Returns the choice made by a text that matches no entry: a database name, if databases are listed.
    pub fn written(&self) -> Option<MenuChoice> {
        let text = self.input.text().trim();
        (self.names_databases() && !text.is_empty()).then(|| MenuChoice::OpenDatabase(text.to_owned()))
    }

    /// A menu with its first entry selected.
    pub fn new(title: impl Into<String>, items: Vec<MenuItem>) -> Self {
        Menu { title: title.into(), items, input: Input::default(), selected: 0, named: None }
    }

    /// Marks that the typed text names a database: that entry comes before matches by letters.
    pub fn name(&mut self) {
        self.named =
            self.written().map(|choice| MenuItem::new(self.input.text().trim(), "opens what you typed", choice));
        // The entry that was selected stays so.
        self.selected += usize::from(self.selected > 0);
    }

    /// The matching entries, best first; all in order if nothing was typed.
    pub fn matching(&self) -> Vec<&MenuItem> {
        let typed = self.input.text().trim();
        if typed.is_empty() {
            return self.items.iter().collect();
        }
        let pattern = Pattern::parse(&spelled_out(typed), CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut letters = Vec::new();
        let mut found: Vec<((MatchSense, bool, u32), &MenuItem)> = Vec::new();
        let opens = |item: &&MenuItem| matches!(&item.choice, MenuChoice::OpenDatabase(name) if name == typed);
        let named = self.items.iter().chain(&self.named).find(opens);
        for item in self.items.iter().filter(|item| named.is_none_or(|named| !std::ptr::eq(named, *item))) {
            let points = pattern.score(Utf32Str::new(&item.label, &mut letters), &mut matcher);
            if let Some(sense) = sense(typed, item, points.is_some()) {
                let writes = item.writes_at_once();
                let sense = if writes && sense > MatchSense::WholeWords { MatchSense::Letters } else { sense };
                found.push(((sense, writes, u32::MAX - points.unwrap_or_default()), item));
            }
        }
        found.sort_by_key(|(rank, _)| *rank);
        named.into_iter().chain(found.into_iter().map(|(_, item)| item)).collect()
    }

    /// The row that a text such as `episode 1234` names; `None` while an entry begins with it, such as `audit trails`.
    pub fn named_row(&self) -> Option<Destination> {
        let text = self.input.text().trim();
        let begins =
            |item: &MenuItem| item.label.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text));
        if self.items.iter().any(begins) {
            return None;
        }
        let (entity, id) = text.split_once(' ')?;
        let (entity, id) = (Entity::parse(entity)?, id.trim());
        (!id.is_empty()).then(|| Destination::Row(entity, id.to_owned()))
    }

    /// Moves the selection among those that match.
    pub fn move_by(&mut self, by: isize) {
        let last = self.matching().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }
}

/// Purpose of a line that the user writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A filter of the list.
    Filter,
    /// The columns of the list.
    Columns,
    /// The file that rows are written to.
    Export,
    /// The reason of the change that waits for a yes.
    Reason,
    /// The reason for the next verdict in the inbox.
    Note,
    /// Reward and outcome of a case.
    Reward,
    /// The window of a profile.
    Window,
    /// The topic to replay.
    Topic,
    /// The person to be erased.
    Person,
    /// The reason for a hold on a person.
    Hold,
    /// A situation to be ranked.
    Situation,
    /// The agent that recalls.
    Agent,
    /// The user of the recall.
    User,
    /// Text that narrows a ranking: domain and topic, or the workflow.
    Narrow,
    /// A name for a saved question.
    Keep,
    /// The reason for muting a finding.
    Mute,
    /// The moment of the past to show.
    Moment,
    /// Words to search for everywhere.
    Find,
    /// Words to search for in the details.
    Within,
    /// A name for a saved place.
    Place,
    /// The database to open.
    Database,
}

/// A line to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Purpose of the line.
    pub purpose: Purpose,
    /// Id of the row concerned; empty if there is none.
    pub subject: String,
    /// Text written so far.
    pub input: Input,
    /// Meaning of the line, or its error.
    pub verdict: Result<String, String>,
    /// Completions at the cursor, best first.
    pub completions: Vec<String>,
    /// Earlier lines for the same purpose, newest first.
    pub earlier: Vec<String>,
    /// Position among the earlier lines; `None` for the line being written.
    pub recalled: Option<usize>,
    /// Entity that the screen lists, when it is a list.
    pub lists: Option<Entity>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(label: &str) -> MenuItem {
        MenuItem {
            label: label.to_owned(),
            note: String::new(),
            keys: String::new(),
            choice: MenuChoice::Command(CommandId::Help),
            unavailable: None,
        }
    }

    #[test]
    fn a_few_letters_find_an_entry() {
        let mut menu = Menu::new("", vec![item("Utility history"), item("Help"), item("Episodes")]);
        menu.input = Input::holding("epi");
        assert_eq!(menu.matching().first().map(|i| i.label.as_str()), Some("Episodes"));
        menu.input = Input::holding("utihis");
        assert_eq!(menu.matching().len(), 1);
        menu.input = Input::holding("zzz");
        assert!(menu.matching().is_empty());
    }

    #[test]
    fn the_name_itself_goes_before_names_that_begin_so_or_hold_it() {
        for (typed, labels, first) in [
            ("undo", ["Undone", "Undo the last change"], "Undo the last change"),
            ("id", ["agent id", "id"], "id"),
            ("agent_id", ["the agent id", "agent id"], "agent id"),
        ] {
            let mut menu = Menu::new("", labels.map(item).into());
            menu.input = Input::holding(typed);
            assert_eq!(menu.matching().first().map(|item| item.label.as_str()), Some(first), "{typed}");
        }
    }

    #[test]
    fn the_selection_stays_within_what_matches() {
        let mut menu = Menu::new("", vec![item("a"), item("b")]);
        menu.move_by(9);
        assert_eq!(menu.selected, 1);
        menu.move_by(-9);
        assert_eq!(menu.selected, 0);
    }

    #[test]
    fn a_title_of_several_words_is_no_row() {
        let mut menu = Menu::new("", vec![item("Audit trails"), item("Memory links")]);
        for (typed, row) in [("audit tr", false), ("Memory links", false), ("memory drawer_1", true), ("audit 7", true)]
        {
            menu.input = Input::holding(typed);
            assert_eq!(menu.named_row().is_some(), row, "{typed}");
        }
    }
}
