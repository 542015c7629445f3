//! Glossary of the words on screens, and the choice of words for a screen's help.

use super::command::CommandId;
use super::screen_kind::ScreenKind;
use crate::memory::Entity;

/// A word and its meaning.
pub type GlossaryEntry = (&'static str, &'static str);

const EPISODE: GlossaryEntry = ("episode", "One remembered experience: the situation, what was done, and how it went.");
const CHAIN: GlossaryEntry = ("chain", "Episodes that follow each other, from the root to its latest descendants.");
const CANVAS: GlossaryEntry = ("canvas", "What was shown to the user next to the chat, such as a sheet or a form.");
const FEEDBACK: GlossaryEntry = ("feedback", "What a user said about an episode: thumbs, a rating, a correction.");
const UTILITY: GlossaryEntry =
    ("utility", "How much an episode helped, from 0 to 1; it starts at 0.5 and signals move it.");
const SIGNAL: GlossaryEntry = ("signal", "Confirmed, corrected, rejected, undone or ignored: what moves a utility.");
const MEMORY: GlossaryEntry = ("memory", "A text that an agent kept to be recalled later.");
const CASE: GlossaryEntry = ("case", "A situation, what was tried in it, and the resulting reward.");
const BANK: GlossaryEntry =
    ("bank", "The cases of one user with one agent; its window is the number of newest cases that it keeps.");
const REWARD: GlossaryEntry = ("reward", "How well a case went, from 0 to 1; recall prefers high ones.");
const QUARANTINED: GlossaryEntry = ("quarantined", "The case stays in the database but is never recalled.");
const POLICY: GlossaryEntry = ("policy", "Weights that were learned to rank cases; one version of a bank is in use.");
const READINESS: GlossaryEntry =
    ("readiness", "How far an agent may act alone, from episodes, interventions and outcomes.");
const SUBJECT: GlossaryEntry = ("subject", "The person that memories are about: the unit of erasure.");
const RECALL: GlossaryEntry = ("recall", "Ranking memories for a situation; every score can be broken down.");
const LIKENESS: GlossaryEntry =
    ("likeness", "How alike two situations are: by vectors where they exist, else by words.");
const CUT: GlossaryEntry = ("cut", "Only the first K rows reach the agent; those below the cut do not.");
const FINDING: GlossaryEntry = ("finding", "Something wrong or suspicious, with the command that fixes it.");
const MENTION: GlossaryEntry = ("mention", "A person who is named in another person's row.");
const HOLD: GlossaryEntry = ("hold", "Nobody can erase the person while a legal hold exists.");
const RECEIPT: GlossaryEntry = ("receipt", "The record of what a change did, and how to undo it.");
const PLAN: GlossaryEntry = (
    "plan",
    "What a change would do, with exact counts. A guarded one needs a separate key, a grave one a typed word.",
);
const TRAIL: GlossaryEntry =
    ("trail", "The chain of audit entries of changes made here; each holds the hash of the one before.");
const ANCHOR: GlossaryEntry = ("anchor", "The last hash of the trail, stored outside the database.");
const JOB: GlossaryEntry = ("job", "A long change in batches; it can be paused and resumed at every checkpoint.");
const BACKFILL: GlossaryEntry = ("backfill", "A job that fills in what rows lack, such as links or signals.");
const MIGRATION: GlossaryEntry = (
    "migration",
    "Tables added next to the application's; a migration named after a layout changes the memory's own \
     tables.",
);
const DRIFT: GlossaryEntry = ("drift", "One of our tables that differs from what its migration created.");
const SEVERITY: GlossaryEntry = ("severity", "How much a finding matters, from high to low.");
const EXAMPLE: GlossaryEntry = ("example", "A row that shows the finding; enter goes there.");
const WINDOW: GlossaryEntry = ("window", "How many of its newest cases a bank keeps.");
const PARENT: GlossaryEntry = ("parent", "The episode that another one follows.");
const TOPIC: GlossaryEntry = ("topic", "What episodes are about; they need not follow each other.");

/// The words explained in the help of a screen.
pub fn words_of(leads_here: CommandId) -> [GlossaryEntry; 5] {
    match leads_here {
        CommandId::List(Entity::Case | Entity::Profile) => [CASE, BANK, REWARD, QUARANTINED, POLICY],
        CommandId::List(Entity::Policy) | CommandId::Panel(ScreenKind::Policies) => {
            [POLICY, BANK, CASE, REWARD, RECALL]
        }
        CommandId::List(Entity::Feedback) | CommandId::Panel(ScreenKind::Inbox) => {
            [FEEDBACK, EPISODE, SIGNAL, UTILITY, PLAN]
        }
        CommandId::List(Entity::UtilityEvent) => [UTILITY, SIGNAL, EPISODE, FEEDBACK, RECALL],
        CommandId::List(Entity::Subject) => [SUBJECT, EPISODE, MENTION, HOLD, FEEDBACK],
        CommandId::List(Entity::Agent) | CommandId::Panel(ScreenKind::Agents) => {
            [READINESS, EPISODE, CANVAS, UTILITY, MEMORY]
        }
        CommandId::List(Entity::Memory | Entity::MemoryLink) => [MEMORY, RECALL, EPISODE, UTILITY, SUBJECT],
        CommandId::List(Entity::CanvasEvent) => [CANVAS, EPISODE, SUBJECT, CHAIN, FEEDBACK],
        CommandId::List(_) => [EPISODE, CHAIN, CANVAS, FEEDBACK, UTILITY],
        CommandId::Panel(ScreenKind::Recall) => [RECALL, LIKENESS, CUT, UTILITY, POLICY],
        CommandId::Panel(ScreenKind::Evaluation) => [RECALL, LIKENESS, CUT, POLICY, EPISODE],
        CommandId::Panel(ScreenKind::Replay) => [TOPIC, PARENT, CHAIN, EPISODE, UTILITY],
        CommandId::Panel(ScreenKind::Findings) => [FINDING, SEVERITY, EXAMPLE, PLAN, EPISODE],
        CommandId::Panel(ScreenKind::Migrations) => [MIGRATION, DRIFT, TRAIL, JOB, PLAN],
        CommandId::Panel(ScreenKind::Jobs) => [JOB, BACKFILL, PLAN, RECEIPT, TRAIL],
        CommandId::Panel(ScreenKind::Receipts) => [RECEIPT, PLAN, TRAIL, ANCHOR, JOB],
        CommandId::Panel(ScreenKind::Trail) => [TRAIL, ANCHOR, RECEIPT, PLAN, MIGRATION],
        CommandId::Panel(ScreenKind::Prune) => [CASE, BANK, WINDOW, REWARD, PLAN],
        CommandId::Panel(ScreenKind::Erase) | CommandId::Erase => [SUBJECT, MENTION, HOLD, PLAN, RECEIPT],
        _ => [EPISODE, MEMORY, CASE, UTILITY, FINDING],
    }
}
