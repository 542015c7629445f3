//! The one table of commands: keys, help, hints, palette and the table of docs/keys.md are derived from it.

use crate::change::plan::erasure::Mentions;
use crate::console::core::screen_kind::ScreenKind;
use crate::console::screens::erase::messages::EraseChoice;
use crate::console::screens::inbox::messages::InboxVerdict;
use crate::console::screens::jobs::messages::JobAsk;
use crate::console::screens::recall::messages::RecallCommand;
use crate::memory::Entity;
use crate::memory::utility::Signal;
use crate::recall::rank::Ranking;

use CommandId::{
    Change, CopyRows, Job, Judge, List, Panel, Recall, Relative, ReplayMore, Resize, ScrollDetail, ScrollJob,
    ScrollPreview, Seek, ShiftColumns, ShowTab, StepRule, Turn,
};

/// Format in which rows are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyForm {
    /// Comma-separated values with a heading.
    Csv,
    /// A table of Markdown.
    Markdown,
}

/// A step along the chain of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainStep {
    /// To the episode that the chain begins with.
    Root,
    /// To the episode that this one follows.
    Parent,
    /// To the episodes that follow this one.
    Children,
}

/// A change requested by a command. It concerns the selected rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandAsk {
    /// Delete the selected row, or the marked ones.
    Remove,
    /// Add a signal to the episode.
    Signal(Signal),
    /// Retract a signal.
    Retract,
    /// Add feedback to the episode.
    AddFeedback,
    /// Edit the selected row, or the marked ones.
    Edit,
    /// Edit feedback on the episode.
    EditFeedback,
    /// Choose another parent for the episode.
    Link,
    /// Unlink the episode from its parent.
    Unlink,
    /// Put the selected policy version to use.
    ActivatePolicy,
    /// Train a new version for the bank of the selected one.
    TrainPolicy,
    /// Set the reward and the outcome of a case.
    Reward,
    /// Set the number of cases that a profile keeps.
    Window,
    /// Hold cases back from recall, or release them.
    Hold(bool),
    /// Place a person under a legal hold, or lift it.
    LegalHold(bool),
}

macro_rules! scopes {
    ($($(#[$doc:meta])* $scope:ident $title:literal;)*) => {
        /// Place where a command can be given.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CommandScope {
            $($(#[$doc])* $scope),*
        }

        impl CommandScope {
            /// Every scope, in the order of the help.
            pub const ALL: &[CommandScope] = &[$(CommandScope::$scope),*];

            /// The heading of its commands in the help.
            pub fn title(self) -> &'static str {
                match self {
                    $(CommandScope::$scope => $title),*
                }
            }
        }
    };
}

scopes! {
    /// In a list.
    List "Lists";
    /// On screens that list rows or show one.
    Rows "Rows";
    /// On the screen that replays a topic.
    Replay "Replay";
    /// On the screen that ranks a situation.
    Recall "Recall";
    /// On the screen that compares two rows.
    Compare "Comparing two rows";
    /// On the first screen, and where texts are searched.
    Find "Finding words";
    /// Among the tables.
    Tables "Tables";
    /// In the inbox.
    Inbox "Inbox";
    /// On the screen that sets rules for pruning.
    Prune "Prune";
    /// In the list of changes made.
    Receipts "Changes";
    /// On the screen that erases a person.
    Erase "Erasing a person";
    /// In the list of findings.
    Findings "Findings";
    /// Among the jobs.
    Jobs "Jobs";
    /// Among the migrations.
    Migrations "Migrations";
    /// On screens that study the memory.
    Study "Agents, policies, evaluation";
    /// On every screen.
    Everywhere "Everywhere";
}

impl CommandScope {
    /// Whether its commands are known on every screen.
    pub fn is_shared(self) -> bool {
        matches!(self, CommandScope::Everywhere | CommandScope::Rows | CommandScope::List)
    }
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConsoleCommand {
    /// Id of the command.
    pub id: CommandId,
    /// Name for people.
    pub title: &'static str,
    /// A word or two for the footer; empty if it is not shown there.
    pub hint: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Keys; several keys separated by a blank are pressed one after the other.
    pub keys: &'static [&'static str],
    /// Scope in which the command can be given.
    pub scope: CommandScope,
}

impl ConsoleCommand {
    /// Returns the entity that the database must hold for the command.
    pub fn needs(&self) -> Option<Entity> {
        match self.id {
            CommandId::List(entity) => Some(entity),
            CommandId::Panel(ScreenKind::Prune) => Some(Entity::Case),
            CommandId::Panel(ScreenKind::Replay) => Some(Entity::Episode),
            CommandId::Panel(ScreenKind::Policies) | CommandId::Change(CommandAsk::TrainPolicy) => Some(Entity::Policy),
            CommandId::Change(CommandAsk::Signal(_) | CommandAsk::Retract) => Some(Entity::UtilityEvent),
            CommandId::Panel(ScreenKind::Inbox)
            | CommandId::Change(CommandAsk::AddFeedback | CommandAsk::EditFeedback) => Some(Entity::Feedback),
            _ => None,
        }
    }

    /// Returns the column that it sets, which changes of the database must be able to set.
    pub fn sets(&self) -> Option<(Entity, &'static str)> {
        let CommandId::Change(ask) = self.id else { return None };
        match ask {
            CommandAsk::Signal(_) => Some((Entity::UtilityEvent, "signal")),
            CommandAsk::Link | CommandAsk::Unlink => Some((Entity::Episode, "parent_id")),
            CommandAsk::Reward => Some((Entity::Case, "reward")),
            CommandAsk::Hold(_) => Some((Entity::Case, "quarantined")),
            CommandAsk::Window => Some((Entity::Profile, "window_size")),
            _ => None,
        }
    }

    /// Whether the session must be unlocked for it.
    pub fn needs_unlocking(&self) -> bool {
        self.changes() && !matches!(self.id, CommandId::Lock | CommandId::Judge(InboxVerdict::Later))
    }

    /// Whether the command leads to a change: a held key must not trigger it.
    pub fn changes(&self) -> bool {
        matches!(
            self.id,
            CommandId::Change(_)
                | CommandId::Judge(_)
                | CommandId::Job(_)
                | CommandId::ApplyMigrations
                | CommandId::Lock
                | CommandId::UndoLast
                | CommandId::UndoEntry
                | CommandId::Prune
        )
    }
}

/// Defines the commands: variants that stand for several of them, then a row for each. A row that is only a name is a
/// variant too.
macro_rules! commands {
    (
        variants { $($variants:tt)* }
        $($($plain:ident)? $(($id:expr))?, $scope:ident, [$($key:literal),*], $title:literal, $hint:literal, $help:literal;)*
    ) => {
        /// Names a command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum CommandId {
            $($variants)*
            $($(#[doc = $help] $plain,)?)*
        }

        /// Every command, in the order of the help.
        pub const COMMANDS: &[ConsoleCommand] = &[$(ConsoleCommand {
            id: $(CommandId::$plain)? $($id)?,
            title: $title,
            hint: $hint,
            help: $help,
            keys: &[$($key),*],
            scope: CommandScope::$scope,
        }),*];
    };
}

commands! {
    variants {
        /// Make the list larger, or smaller.
        Resize(bool),
        /// Copy rows in a form.
        CopyRows(CopyForm),
        /// Go along the chain of the episode.
        Relative(ChainStep),
        /// Show a tab by its title.
        ShowTab(&'static str),
        /// Go to the next match in the details, or to the previous one.
        Seek(bool),
        /// Show the columns further right, or left.
        ShiftColumns(bool),
        /// The list of an entity.
        List(Entity),
        /// A screen of its own kind.
        Panel(ScreenKind),
        /// A choice while a person is erased.
        Turn(EraseChoice),
        /// A change of the selected row.
        Change(CommandAsk),
        /// Give a verdict in the inbox.
        Judge(InboxVerdict),
        /// Start, pause or end the selected job.
        Job(JobAsk),
        /// Set a rule stricter, or looser.
        StepRule(bool),
        /// Scroll the details down or up, whichever pane has the focus.
        ScrollDetail(bool),
        /// Scroll the effect of the rules down or up.
        ScrollPreview(bool),
        /// Scroll the description of a job down or up.
        ScrollJob(bool),
        /// Show more episodes of the topic, or fewer.
        ReplayMore(bool),
        /// A command of the recall screen.
        Recall(RecallCommand),
    }
    Home, Everywhere, ["1"], "Home", "", "Shows what this database is and what needs attention.";
    (List(Entity::Episode)), Everywhere, ["2"], "Episodes", "", "Lists the episodes.";
    (List(Entity::Memory)), Everywhere, ["3"], "Memories", "", "Lists the memories: drawers, closets and the like.";
    (List(Entity::Case)), Everywhere, ["4"], "Cases", "", "Lists the cases.";
    (List(Entity::Feedback)), Everywhere, ["5"], "Feedback", "", "Lists what users said.";
    (List(Entity::CanvasEvent)), Everywhere, ["6"], "Canvas events", "", "Lists what happened on canvases.";
    (List(Entity::UtilityEvent)), Everywhere, ["7"], "Utility history", "", "Lists the signals that moved utilities.";
    (List(Entity::Subject)), Everywhere, ["8"], "Subjects", "", "Lists the people in this database.";
    (List(Entity::Agent)), Everywhere, ["9"], "Agents", "", "Lists the agents that remember.";
    (List(Entity::AuditEntry)), Everywhere, ["0"], "Audit trails", "", "Lists the audit trails.";
    (List(Entity::Policy)), Everywhere, [], "Policies", "", "Lists the learned retrieval weights.";
    (List(Entity::Profile)), Everywhere, [], "Profiles", "", "Lists the banks that cases are in.";
    (List(Entity::WorkflowEvent)), Everywhere, [], "Workflow events", "", "Lists the event logs.";
    (List(Entity::Access)), Everywhere, [], "Accesses", "", "Lists what was recalled, when and by whom.";
    (List(Entity::Segment)), Everywhere, [], "Segments", "", "Lists the pieces of episodes.";
    (List(Entity::MemoryLink)), Everywhere, [], "Memory links", "", "Lists which episode retrieved which memory.";
    Up, Everywhere, ["k", "up"], "Up", "", "Moves up one row.";
    Down, Everywhere, ["j", "down"], "Down", "", "Moves down one row.";
    PageUp, Everywhere, ["pgup", "ctrl-u", "ctrl-b"], "Page up", "", "Moves up one screen.";
    PageDown, Everywhere, ["pgdn", "ctrl-d", "ctrl-f"], "Page down", "", "Moves down one screen.";
    First, Everywhere, ["g", "home"], "First", "", "Goes to the first row.";
    Last, Everywhere, ["G", "end"], "Last", "", "Goes to the last row.";
    (ScrollDetail(true)), Everywhere, ["ctrl-e"], "Scroll details down", "scroll", "Scrolls the details down, while the list keeps the keys.";
    (ScrollDetail(false)), Everywhere, ["ctrl-y"], "Scroll details up", "", "Scrolls the details up.";
    Open, Everywhere, ["enter"], "Open", "open", "Opens the selected row; in the details, opens what they \
        lead to.";
    Palette, Everywhere, [":", "ctrl-p"], "Palette", "jump", "Finds a screen or a command by a few letters; an entity and an id open that row.";
    Close, Everywhere, ["esc"], "Step out", "", "Stops what is loading; otherwise goes one step back: from \
     the details to the list, then to the screen before.";
    Back, Everywhere, ["[", "backspace", "alt-left"], "Back", "", "Goes back to where you came from.";
    Forward, Everywhere, ["]", "alt-right"], "Forward", "", "Goes forward again.";
    Filter, List, ["/"], "Filter", "filter", "Narrows the list: conditions as on the command line, or words \
     of the title. Times without a zone use the zone that lists show.";
    ClearFilter, List, ["\\"], "Clear filter", "", "Lists every row again.";
    Columns, List, ["n c"], "Columns", "", "Chooses the columns of the list and their order, by name; the \
     choice is kept. An empty line restores the defaults.";
    Sort, List, ["s"], "Sort", "sort", "Chooses the column that orders the list; choosing it again reverses \
     the order.";
    SortLeft, List, ["<"], "Sort by the column to the left", "", "Orders the list by the column to the left.";
    SortRight, List, [">"], "Sort by the column to the right", "", "Orders the list by the column to the right.";
    Reverse, List, ["S"], "Reverse", "", "Reverses the order of the list.";
    Tail, Everywhere, ["space"], "Follow the newest", "live", "Goes to the newest row and follows new rows, \
        or pauses that.";
    Mark, List, ["v"], "Mark", "mark", "Marks or unmarks the row, and moves down.";
    Unmark, List, ["|"], "Unmark all", "", "Removes all marks.";
    Compare, Rows, ["="], "Compare", "", "Compares the marked rows, or an episode with the one it follows.";
    (Panel(ScreenKind::Tables)), Everywhere, ["B"], "Tables", "", "Shows the raw tables of the database and \
        their rows, with or without a layout.";
    (ShiftColumns(true)), Tables, ["l", "right"], "Columns further right", "columns", "Shows the columns further right.";
    (ShiftColumns(false)), Tables, ["h", "left"], "Columns further left", "", "Shows the columns further left.";
    DraftLayout, Tables, ["o"], "Draft a layout", "draft a layout", "Drafts a layout from names, types, keys and sampled rows, opens it in $VISUAL or $EDITOR, and keeps the file.";
    Exchange, Compare, ["~"], "Exchange", "exchange", "Swaps the two rows.";
    Find, Everywhere, [], "Find", "", "Looks for words in the texts of every kind of row.";
    FindHere, Find, ["/"], "Find words", "find", "Looks for words in the texts of every kind of row.";
    LookBack, Everywhere, ["@"], "As of", "", "Shows rows and recall as they were at a time, at an age such \
     as 7d, or after a change, by its number; an empty line returns to now.";
    Export, List, ["e"], "Export", "export", "Writes the marked rows, or all rows that match the filter, to \
     a file as JSON lines.";
    (Change(CommandAsk::AddFeedback)), Rows, ["c a"], "Add feedback", "", "Adds feedback to the episode.";
    (Change(CommandAsk::Edit)), Rows, ["c e"], "Edit", "", "Changes the row, or all marked ones, in a form.";
    (Change(CommandAsk::EditFeedback)), Rows, ["c f"], "Edit feedback", "", "Changes what feedback on the episode says.";
    (Change(CommandAsk::Link)), Rows, ["c l"], "Link", "", "Chooses the episode that this one follows.";
    (Change(CommandAsk::Reward)), Rows, ["c r"], "Reward", "", "Sets the reward of the case, and its outcome.";
    (Change(CommandAsk::Window)), Rows, ["c w"], "Window", "", "Sets how many of its newest cases the profile keeps.";
    (Change(CommandAsk::Hold(true))), Rows, ["c q"], "Quarantine", "", "Excludes the case, or the marked \
        ones, from recall.";
    (Change(CommandAsk::Hold(false))), Rows, ["c Q"], "Release", "", "Includes the case, or the marked ones, \
        in recall again.";
    (Change(CommandAsk::LegalHold(true))), Everywhere, ["c h"], "Legal hold", "", "Places a legal hold on the \
        person: nobody can erase them until it ends.";
    (Change(CommandAsk::LegalHold(false))), Everywhere, ["c H"], "End the legal hold", "", "Ends the hold on \
        the person.";
    (Change(CommandAsk::Remove)), Rows, ["c d"], "Remove", "", "Removes the row, or the marked ones, and what \
        depends on them.";
    (Change(CommandAsk::Signal(Signal::Confirmed))), Rows, ["t c"], "Confirmed", "", "Records that the episode was confirmed: its utility rises.";
    (Change(CommandAsk::Signal(Signal::Corrected))), Rows, ["t o"], "Corrected", "", "Records that the episode was corrected.";
    (Change(CommandAsk::Signal(Signal::Rejected))), Rows, ["t r"], "Rejected", "", "Records that the episode was rejected.";
    (Change(CommandAsk::Signal(Signal::Undone))), Rows, ["t u"], "Undone", "", "Records that what the episode did was undone.";
    (Change(CommandAsk::Signal(Signal::Ignored))), Rows, ["t i"], "Ignored", "", "Records that the episode was ignored.";
    (Change(CommandAsk::Retract)), Rows, ["t x"], "Retract signal", "", "Retracts a signal; the utility is \
        replayed without it.";
    (Change(CommandAsk::Unlink)), Rows, ["c u"], "Unlink", "", "Removes the episode's parent.";
    (Change(CommandAsk::ActivatePolicy)), Study, ["c a"], "Activate policy", "activate", "Activates the \
        selected version; the others stay.";
    (Change(CommandAsk::TrainPolicy)), Rows, ["c t"], "Train policy", "train", "Trains a new version of the bank's policy, or its first one, from what its cases recalled; it is stored for review.";
    (Panel(ScreenKind::Recall)), Everywhere, ["W"], "Recall: why is this remembered", "", "Ranks memories for \
        a situation, that of the selected row or one in words, and breaks down every score.";
    (Recall(RecallCommand::Write)), Recall, ["/"], "Write a situation", "situation", "Describes the \
        situation in words.";
    (Recall(RecallCommand::Rank(Ranking::Boosted))), Recall, ["n 1"], "Boosted", "", "Ranks episodes \
        by time and likeness, boosted by canvas and feedback.";
    (Recall(RecallCommand::Rank(Ranking::Proven))), Recall, ["n 2"], "Proven", "", "Ranks memories and episodes by domain, topic, utility and age.";
    (Recall(RecallCommand::Rank(Ranking::Cases))), Recall, ["n 3"], "Cases", "", "Ranks cases by \
        likeness.";
    (Recall(RecallCommand::Rank(Ranking::Similar))), Recall, ["n 4"], "Similar", "", "Ranks \
        successful episodes with a similar situation and outcome.";
    (Recall(RecallCommand::Compare)), Recall, ["="], "Compare", "compare", "Ranks the same situation \
        in another way, next to this one.";
    (Recall(RecallCommand::Ways)), Recall, ["s"], "All rankings", "ranking", "Chooses among all rankings and the learned policies.";
    (Recall(RecallCommand::Side(false))), Recall, ["h", "left"], "Left ranking", "", "Goes to the \
        ranking on the left.";
    (Recall(RecallCommand::Side(true))), Recall, ["l", "right"], "Right ranking", "", "Goes to the \
        ranking on the right.";
    (Recall(RecallCommand::Swap)), Recall, ["~"], "Exchange", "", "Swaps the two rankings.";
    (Recall(RecallCommand::More(true))), Recall, ["+"], "One row more", "- rows", "Recalls one more \
        row.";
    (Recall(RecallCommand::More(false))), Recall, ["-"], "One row fewer", "", "Recalls one row fewer.";
    (Recall(RecallCommand::Levers)), Recall, ["x"], "Move the row", "move it", "Shows what would move \
        the selected row, with its resulting place, and plans what you choose.";
    (Recall(RecallCommand::Agent)), Recall, ["n a"], "Agent", "agent", "Uses the memories of one \
        agent, or of all.";
    (Recall(RecallCommand::User)), Recall, ["n u"], "User", "user", "Uses the memories of one user, \
        or of all.";
    (Recall(RecallCommand::Narrow)), Recall, ["n n"], "Narrow", "", "Sets the domain and topic to \
        look for, or the workflow of similar episodes.";
    (Recall(RecallCommand::Outcomes)), Recall, ["n o"], "Outcomes", "", "Includes failures among the \
        similar episodes, or only successes.";
    (Recall(RecallCommand::Save)), Recall, ["b k"], "Keep the question", "keep", "Saves the question \
        under a name, in your own files.";
    (Recall(RecallCommand::Saved)), Recall, ["b b"], "Kept questions", "kept", "Asks a saved question \
        again.";
    (Recall(RecallCommand::Forget)), Recall, ["b d"], "Forget a question", "", "Forgets a saved \
        question.";
    (Panel(ScreenKind::Agents)), Everywhere, ["O"], "Agents at work", "", "Shows what people do with canvases, how ready each agent is, what fades and which memories mislead.";
    (Panel(ScreenKind::Policies)), Everywhere, ["L"], "Learned policies", "", "Shows the versions of retrieval policies, how good each is and which is in use.";
    (Panel(ScreenKind::Evaluation)), Everywhere, ["E"], "Evaluation", "", "Judges recall: hit rate, precision, nonsense, coverage, swamping, latency.";
    (Judge(InboxVerdict::Right)), Inbox, ["a"], "It is right", "right", "Signals to the episode what the feedback says about it: confirmed, corrected or rejected.";
    (Judge(InboxVerdict::Flipped)), Inbox, ["x"], "Flip", "flip", "Turns thumbs up into thumbs down, or vice \
        versa.";
    (Judge(InboxVerdict::Rated(1))), Inbox, ["c 1"], "Rate 1", "to 5 rate", "Makes it a rating of 1.";
    (Judge(InboxVerdict::Rated(2))), Inbox, ["c 2"], "Rate 2", "", "Makes it a rating of 2.";
    (Judge(InboxVerdict::Rated(3))), Inbox, ["c 3"], "Rate 3", "", "Makes it a rating of 3.";
    (Judge(InboxVerdict::Rated(4))), Inbox, ["c 4"], "Rate 4", "", "Makes it a rating of 4.";
    (Judge(InboxVerdict::Rated(5))), Inbox, ["c 5"], "Rate 5", "", "Makes it a rating of 5.";
    (Judge(InboxVerdict::Edited)), Inbox, ["c e"], "Edit", "edit", "Opens the form: kind, rating, correction.";
    (Judge(InboxVerdict::Removed)), Inbox, ["d"], "Remove", "remove", "Removes the feedback.";
    Note, Inbox, ["c n"], "Note", "note", "Records a reason for the next verdict.";
    (Judge(InboxVerdict::Later)), Inbox, ["i"], "Later", "later", "Leaves it for another session.";
    LookLonger, Inbox, ["+"], "Look longer", "", "Spends more time on how recall would change.";
    (Job(JobAsk::Start)), Jobs, ["a"], "Start or resume", "start", "Plans the job, and starts it or resumes it after a yes.";
    (Job(JobAsk::Pause)), Jobs, ["p"], "Pause", "pause", "Stops the job at its next checkpoint.";
    (Job(JobAsk::Cancel)), Jobs, ["d"], "End the job", "end", "Ends the job at its next checkpoint; what it did stays.";
    (ScrollJob(true)), Jobs, ["pgdn", "ctrl-f"], "Scroll down", "scroll", "Scrolls the job's details.";
    (ScrollJob(false)), Jobs, ["pgup", "ctrl-b"], "Scroll up", "", "Scrolls the job's details back.";
    UndoEntry, Receipts, ["u"], "Undo", "undo", "Plans the inverse of the selected change.";
    (Panel(ScreenKind::Receipts)), Everywhere, ["R"], "Changes", "", "Lists the changes that were made here, \
        newest first, and undoes them.";
    Fix, Findings, ["x"], "Fix", "fix", "Fixes the finding if the console can; otherwise shows the command \
     that does.";
    Mute, Findings, ["m"], "Mute", "mute", "Hides the kind, or the example when the examples have the \
     focus, for a reason that you give; shows it again if it is muted.";
    NextExample, Findings, ["l", "right"], "Next example", "next example", "Selects the next example; enter goes there.";
    PreviousExample, Findings, ["h", "left"], "Previous example", "", "Selects the previous example.";
    ApplyMigrations, Migrations, ["a"], "Apply", "apply", "Applies all that are pending, and the selected one if it is optional, after a confirmation that shows their statements.";
    (Panel(ScreenKind::Trail)), Everywhere, ["C"], "Check the audit trail", "", "Checks the chain of the \
        audit trail against its anchors, and shows where it is broken.";
    (Panel(ScreenKind::Findings)), Everywhere, ["F"], "Findings", "", "Finds what is wrong or suspicious, \
        with the command that fixes it.";
    (Panel(ScreenKind::Migrations)), Everywhere, ["D"], "Migrations", "", "Shows what the database lacks, with statements, locks and drift, and applies it.";
    (Panel(ScreenKind::Inbox)), Everywhere, ["I"], "Inbox", "", "Goes through the feedback that needs a look, until none is left.";
    (Panel(ScreenKind::Jobs)), Everywhere, ["J"], "Jobs", "", "Lists what can be filled in or fixed in batches, and runs it.";
    (StepRule(true)), Prune, ["l", "right", "+"], "Stricter", "stricter", "Makes the rule stricter, so that \
        more cases are removed; shows the next window.";
    (StepRule(false)), Prune, ["h", "left", "-"], "Looser", "looser", "Makes the rule looser, so that fewer \
        cases are removed; shows the previous window.";
    ToggleRule, Prune, ["space"], "On or off", "", "Turns the rule on or off, or steps it.";
    (ScrollPreview(true)), Prune, ["pgdn", "ctrl-f"], "Scroll down", "scroll", "Scrolls what would be \
        removed.";
    (ScrollPreview(false)), Prune, ["pgup", "ctrl-b"], "Scroll up", "", "Scrolls back what would be removed.";
    Prune, Prune, ["a"], "Prune", "prune", "Plans what is shown, for you to confirm; enter does the same.";
    (Panel(ScreenKind::Prune)), Everywhere, ["P"], "Prune", "", "Sets rules for removing cases from banks, \
        and shows their effect.";
    Erase, Everywhere, ["c p"], "Erase a person", "", "Shows where the selected or a named person is, and \
        what erasing would do, step by step; nothing is deleted before you type the id.";
    (Turn(EraseChoice::Next)), Erase, ["l", "right"], "Next step", "next", "Goes to the next step; from the last one to the question.";
    (Turn(EraseChoice::Before)), Erase, ["h", "left"], "Step before", "back", "Goes to the previous step.";
    (Turn(EraseChoice::Other)), Erase, ["/"], "Somebody else", "", "Names the person: an id, e-mail, name, \
        session, or any other handle.";
    (Turn(EraseChoice::Mentions)), Erase, ["c m"], "Mentions", "mentions", "Leaves, redacts or deletes mentions in other people's rows.";
    (Turn(EraseChoice::Decide(Mentions::Leave, false))), Erase, ["i"], "Leave the mention", "leave", "Leaves the selected mention as it is; the receipt says so.";
    (Turn(EraseChoice::Decide(Mentions::Redact, false))), Erase, ["x"], "Redact the mention", "redact", "Removes \
        the words of the selected mention; a key is renamed.";
    (Turn(EraseChoice::Decide(Mentions::Delete, false))), Erase, ["d"], "Delete the mention", "delete", "Deletes \
        the row of the selected mention.";
    (Turn(EraseChoice::Decide(Mentions::Leave, true))), Erase, ["* i"], "Leave its column", "its column", "Leaves all mentions in the column of the selected one.";
    (Turn(EraseChoice::Decide(Mentions::Redact, true))), Erase, ["* x"], "Redact its column", "", "Redacts all mentions in the column of the selected one.";
    (Turn(EraseChoice::Decide(Mentions::Delete, true))), Erase, ["* d"], "Delete its column", "", "Deletes \
        the rows of all mentions in the column of the selected one.";
    (Turn(EraseChoice::Account)), Erase, ["c a"], "Account", "account", "Keeps or erases the person's account with the application.";
    (Turn(EraseChoice::Export)), Erase, ["c x"], "Export first", "export", "Writes everything stored about \
        the person to a folder first.";
    (Turn(EraseChoice::Full)), Erase, ["c f"], "Rewrite tables", "", "PostgreSQL: rewrites the tables, which \
        locks them in the meantime.";
    (Turn(EraseChoice::Longer)), Erase, ["+"], "Look longer", "", "Spends more time on how recall would \
        change.";
    Topic, Replay, ["/"], "Topic", "topic", "Sets the topic whose episodes are shown in time order.";
    (ReplayMore(true)), Replay, ["+"], "More episodes", "more", "Shows more episodes of the topic.";
    (ReplayMore(false)), Replay, ["-"], "Fewer episodes", "fewer", "Shows only those that match it best.";
    (Panel(ScreenKind::Replay)), Everywhere, ["V"], "Replay", "", "Shows a topic, or what is around the selected episode, as a time line with suggested parents.";
    UndoLast, Everywhere, ["Z"], "Undo the last change", "", "Plans the inverse of the last change of this session.";
    Lock, Everywhere, ["U"], "Unlock or lock", "", "Makes changes possible after a confirmation, or impossible again.";
    Focus, Everywhere, ["tab", "backtab"], "Other pane", "other pane", "Goes from the list to the details and back; on the first screen to its next part.";
    TabRight, Rows, ["l", "right"], "Next tab", "tabs", "Shows the next tab of the details.";
    TabLeft, Rows, ["h", "left"], "Previous tab", "", "Shows the previous tab of the details.";
    (Resize(true)), Rows, ["+"], "Larger list", "", "Makes the list larger and the details smaller; the size \
        is kept.";
    (Resize(false)), Rows, ["-"], "Smaller list", "", "Makes the list smaller and the details larger; the \
        size is kept.";
    Zoom, Rows, ["z"], "Zoom", "zoom", "Zooms the pane to the whole screen, or back.";
    Follow, Rows, ["f"], "Follow", "follow", "Goes to something that the row is related to.";
    (Seek(true)), Rows, [";"], "Find in the details", "", "Finds words in the details. An empty line goes to \
        the next match, and , to the previous one.";
    (Seek(false)), Rows, [","], "Find the one before", "", "Goes to the previous line that contains the text.";
    CopyId, Rows, ["y y"], "Copy id", "", "Copies the id.";
    CopyJson, Rows, ["Y", "y j"], "Copy JSON", "", "Copies the row as JSON.";
    CopyText, Rows, ["y t"], "Copy text", "", "Copies the text that names the row.";
    CopyCommand, Everywhere, ["y c"], "Copy command", "", "Copies the command line that shows the same.";
    (CopyRows(CopyForm::Csv)), Rows, ["y v"], "Copy as CSV", "", "Copies the row, or the marked ones, as CSV.";
    (CopyRows(CopyForm::Markdown)), Rows, ["y m"], "Copy as Markdown", "", "Copies the row, or the marked ones, as a table of Markdown.";
    CopyRunbook, Everywhere, ["y r"], "Copy the runbook", "", "Copies what was changed in this session as a shell script.";
    (Relative(ChainStep::Root)), Rows, ["^"], "Root", "root", "Goes to the first episode of the chain, in the \
        same tab.";
    (Relative(ChainStep::Parent)), Rows, ["{"], "Parent", "parent", "Goes to the episode that this one follows, in the same tab.";
    (Relative(ChainStep::Children)), Rows, ["}"], "Children", "children", "Goes to the episode that follows this one, in the same tab.";
    (ShowTab("overview")), Rows, [". o"], "Overview", "", "Shows what matters most about the row.";
    (ShowTab("story")), Rows, [". t"], "Story", "", "Shows all that happened in the episode in lanes on one time line; enter on a moment shows its lane alone.";
    (ShowTab("chain")), Rows, [". c"], "Chain", "", "Shows the chain of the episode from its root.";
    (ShowTab("segments")), Rows, [". s"], "Segments", "", "Shows what was said and done in the episode.";
    (ShowTab("canvas")), Rows, [". a"], "Canvas", "", "Shows what happened on canvases.";
    (ShowTab("feedback")), Rows, [". f"], "Feedback", "", "Shows what users said of the episode.";
    (ShowTab("utility")), Rows, [". u"], "Utility", "", "Shows the signals of the episode and how they moved its utility.";
    (ShowTab("memories")), Rows, [". m"], "Memories", "", "Shows what the episode retrieved.";
    (ShowTab("events")), Rows, [". e"], "Events", "", "Shows the event log of the episode.";
    (ShowTab("accesses")), Rows, [". x"], "Accesses", "", "Shows who recalled the episode.";
    (ShowTab("where")), Rows, [". w"], "Where", "", "Shows where the person is in the database.";
    (ShowTab("related")), Rows, [". r"], "Related", "", "Shows the rows that are related to it.";
    (ShowTab("JSON")), Rows, [". j"], "JSON", "", "Shows the row as JSON.";
    View, Rows, ["o"], "Open in the editor", "", "Opens a copy of the row as JSON in $VISUAL or $EDITOR. \
        Saving there changes nothing.";
    Wrap, Rows, ["w"], "Wrap", "", "Wraps long texts in details, or cuts them.";
    Refresh, Everywhere, ["r", "f5"], "Refresh", "", "Reads again what is shown; the same row stays selected.";
    KeepPlace, Everywhere, ["b k"], "Keep this place", "", "Saves the list with its filter and order, the \
        row, or the screen under a name, in your own files.";
    GoToKept, Everywhere, ["b b"], "Go to a kept place", "", "Goes to a saved place, or to the one that you \
        left last.";
    ForgetPlace, Everywhere, ["b d"], "Forget a kept place", "", "Forgets a saved place.";
    Switch, Everywhere, ["ctrl-o"], "Open another database", "", "Opens another database in addition to \
        this one, or switches to an open one: a recent one, a profile, a file or the demo.";
    NextDatabase, Everywhere, ["ctrl-n"], "Next database", "", "Switches to the next open database, as you \
        left it.";
    CloseDatabase, Everywhere, ["ctrl-w"], "Close this database", "", "Closes this database; the others \
        stay open.";
    Mask, Everywhere, ["M"], "Mask", "", "Replaces personal values by stable pseudonyms, or shows them again.";
    Theme, Everywhere, ["T"], "Theme", "", "Chooses the theme.";
    Mouse, Everywhere, ["alt-m"], "Mouse", "", "Uses the mouse, or leaves it to the terminal for selecting text.";
    Redraw, Everywhere, ["ctrl-l"], "Redraw", "", "Redraws the screen.";
    Suspend, Everywhere, ["ctrl-z"], "Suspend", "", "Stops the console; the shell's fg continues it.";
    Help, Everywhere, ["?", "f1"], "Help", "help", "Shows these keys.";
    Tour, Everywhere, [], "Tour", "", "Shows the screens one after another, in ten steps.";
    Quit, Everywhere, ["q", "ctrl-c"], "Quit", "quit", "Ends the console, or closes what is open above the \
        screen.";
}

/// The command with this name.
pub fn command(id: CommandId) -> Option<&'static ConsoleCommand> {
    COMMANDS.iter().find(|c| c.id == id)
}

/// Other words under which a command is found.
pub fn meanings(id: CommandId) -> &'static str {
    match id {
        CommandId::Tail => "automatic live tail watch stream",
        CommandId::Panel(ScreenKind::Jobs) => "automatic batches backfill run pause resume embeddings vectors links",
        CommandId::Panel(ScreenKind::Prune) => "automatic rules retention forget clean old cases",
        CommandId::Panel(ScreenKind::Findings) => "automatic checks problems secrets health lint doctor",
        CommandId::Panel(ScreenKind::Migrations) => "schema tables install upgrade",
        CommandId::Panel(ScreenKind::Tables) => "raw sql schema columns unknown database layout draft",
        CommandId::Panel(ScreenKind::Inbox) => "review judge triage feedback verdict",
        CommandId::Panel(ScreenKind::Receipts) => "history undo revert restore receipts audit log",
        CommandId::Panel(ScreenKind::Trail) => "verify audit hash chain tamper",
        CommandId::Panel(ScreenKind::Recall) => "why search rank explain similar remember",
        CommandId::Panel(ScreenKind::Evaluation) => "quality metrics precision benchmark",
        CommandId::Panel(ScreenKind::Policies) => "learn weights train model versions",
        CommandId::Panel(ScreenKind::Replay) => "timeline story topic",
        CommandId::Panel(ScreenKind::Agents) => "statistics usage readiness graduation",
        CommandId::Erase => "purge delete person gdpr forget privacy proof",
        CommandId::Lock => "write edit read-only readonly unlock permission",
        CommandId::Mask => "hide privacy pseudonym share screen anonymous",
        CommandId::Theme => "colours colors settings dark light contrast appearance",
        CommandId::Filter => "search where narrow",
        CommandId::NextDatabase => "switch change other open",
        CommandId::CloseDatabase => "disconnect leave",
        CommandId::Switch => "connect switch change database profile recent",
        CommandId::KeepPlace | CommandId::GoToKept | CommandId::ForgetPlace => "bookmark saved view favourite",
        CommandId::CopyRunbook => "script shell session",
        CommandId::Find => "search everything full text words",
        CommandId::LookBack => "past history time travel before at",
        CommandId::Compare => "diff difference versus",
        CommandId::Sort => "order",
        CommandId::Export => "save write download json",
        CommandId::Change(CommandAsk::Remove) => "delete drop",
        CommandId::UndoLast => "revert restore take back",
        CommandId::List(Entity::Subject) => "people persons users",
        CommandId::List(Entity::UtilityEvent) => "signals",
        CommandId::Home => "start overview dashboard what waits",
        CommandId::Quit => "exit leave end",
        CommandId::Tour => "introduction tutorial learn begin",
        CommandId::Help => "keys words glossary shortcuts",
        _ => "",
    }
}

/// Returns the commands of a scope that appear in the footer.
pub fn hinted(scope: CommandScope) -> impl Iterator<Item = CommandId> {
    COMMANDS.iter().filter(move |command| command.scope == scope && !command.hint.is_empty()).map(|command| command.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::core::key::Key;
    use crate::console::core::key_map::sequence;

    #[test]
    fn every_key_is_readable_and_means_one_thing() {
        let own = CommandScope::ALL.iter().filter(|scope| !scope.is_shared());
        own.for_each(|scope| means_one_thing(|command| command.scope == *scope));
        means_one_thing(|command| command.scope.is_shared());
    }

    fn means_one_thing(taken: impl Fn(&ConsoleCommand) -> bool) {
        let mut seen: Vec<Vec<Key>> = Vec::new();
        for command in COMMANDS.iter().filter(|command| taken(command)) {
            for keys in command.keys {
                let keys: Vec<Key> = sequence(keys).map(|k| k.unwrap_or_else(|| panic!("{keys}"))).collect();
                let clash = seen.iter().find(|other| other.starts_with(&keys) || keys.starts_with(other));
                assert!(clash.is_none(), "{} clashes with {clash:?}", command.title);
                seen.push(keys);
            }
        }
    }

    #[test]
    fn a_command_stands_once_and_says_what_it_does() {
        for (index, command) in COMMANDS.iter().enumerate() {
            assert!(COMMANDS[..index].iter().all(|c| c.id != command.id), "{}", command.title);
            assert!(command.help.ends_with('.') && !command.title.is_empty());
        }
    }

    #[test]
    fn every_entity_has_a_screen() {
        for entity in Entity::ALL {
            assert!(command(CommandId::List(*entity)).is_some(), "{entity}");
        }
    }
}
