//! The release engineer's topics.

use super::{CanvasShow, Topic, TopicStep};

pub(super) const LEAK: Topic = Topic {
    name: "debugging memory leak",
    agent: 2,
    workflow: "hunt_leak",
    reference: "OPS",
    titles: &[
        "{service} grows by {big} MB a day",
        "Memory leak in {service} since {version}",
        "Heap of {service} after {n} hours",
        "{service} is killed at night",
    ],
    situations: &[
        "{service} was killed {n} times last night; its memory grows by {big} MB a day since {version}.",
        "The graph of {service} climbs in steps, one every {n} minutes, and never falls.",
        "{user} restarted {service} at {minute} past eight; by noon it held {big} MB again.",
    ],
    thoughts: &[
        "Steps every {n} minutes point at the scheduler, not at the requests.",
        "Two heap snapshots an hour apart will show which type grows.",
        "The cache has no upper bound; before blaming it, count its entries.",
        "Reverting {version} hides the leak but does not explain it.",
    ],
    successes: &[
        "The retry queue kept every failed request; with a bound of {big} the memory stays flat over night.",
        "Found {n} listeners that were never removed; the fix is in review.",
        "Heap is flat for {n} hours after the fix; rolled out to all regions.",
    ],
    failures: &[
        "The snapshot itself killed {service}; nothing learned, one restart more.",
        "Bounding the cache changed nothing: it grows elsewhere.",
        "Reverted {version}; it still grows, so the leak is older.",
    ],
    insights: &[
        "Take snapshots on a copy under replayed traffic, never on the live process.",
        "A staircase in the graph means a timer; look at what runs at that interval.",
        "Bound every queue that keeps failures.",
    ],
    decisions: &["Compare two heap snapshots", "Bound the retry queue", "Roll out to one region first"],
    asks: &[
        "It was killed again tonight. Any idea?",
        "Can we ship {version} today or does it leak too?",
        "What did you rule out so far?",
    ],
    answers: &[
        "Not the cache: its {big} entries stay constant while the heap grows.",
        "The growth follows the scheduler; I compare two snapshots next.",
        "With the bound in place the heap is flat since {n} hours.",
    ],
    corrections: &["Do not take snapshots in production.", "It began before {version}, look at the older graph."],
    facts: &[
        "{service} keeps failed requests in a queue without a bound up to {version}.",
        "A heap snapshot of {service} stops it for about {n} seconds.",
        "The scheduler of {service} runs every {n} minutes.",
    ],
    steps: &[
        TopicStep { name: "read_graphs", result: "+{big} MB a day in steps", error: "metrics store answered 504" },
        TopicStep {
            name: "take_snapshot",
            result: "heap of {big} MB written",
            error: "out of memory while writing the heap",
        },
        TopicStep { name: "compare_snapshots", result: "{n} types grow", error: "snapshot {file} is truncated" },
        TopicStep { name: "run_replay", result: "flat after {n} hours", error: "replay stopped: {n} requests failed" },
    ],
    tools: &["metrics", "heap_diff", "shell", "deploy"],
    tags: &["memory", "profiling", "incident"],
    shows: &[CanvasShow::Shell, CanvasShow::Line, CanvasShow::Diff, CanvasShow::Line],
    length: &[0.2, 0.2, 0.25, 0.2, 0.1, 0.05],
};

pub(super) const NOTES: Topic = Topic {
    name: "release notes",
    agent: 2,
    workflow: "write_notes",
    reference: "REL",
    titles: &[
        "Release notes for {service} {version}",
        "Announce {version} to {customer}",
        "What changed since {version}?",
    ],
    situations: &[
        "{service} {version} goes out on {day}; {n} merged changes have no line in the notes yet.",
        "{customer} asks which of the {n} changes in {version} they will notice.",
        "{user} needs the notes in two languages before {day}.",
    ],
    thoughts: &[
        "Order by what a reader notices, not by when it was merged.",
        "{n} changes are internal and need no line.",
        "The breaking change belongs on top, with what to do about it.",
    ],
    successes: &[
        "Notes with {n} lines approved by {user}; the breaking change stands first.",
        "{customer} got a short version with the three changes that concern them.",
    ],
    failures: &[
        "Listed a change that was reverted on {day}; the notes were corrected after the mail.",
        "{user} rewrote the notes: too technical.",
    ],
    insights: &[
        "Check each line against the tag, not against the branch.",
        "Write what the reader can do now, leave the how out.",
    ],
    decisions: &["Breaking change first", "Leave internal changes out", "Send {customer} a version of its own"],
    asks: &[
        "Please draft the notes for {version}.",
        "Is the change that {colleague} made in there?",
        "Shorter, please.",
    ],
    answers: &[
        "The draft has {n} lines; the breaking change is on top.",
        "Two changes were reverted, so I left them out.",
        "I sent the draft to the canvas for review.",
    ],
    corrections: &[
        "The change was reverted, take it out.",
        "Say 'you', not 'the user'.",
        "Product names are written with a capital letter.",
    ],
    facts: &[
        "Notes of {service} go out at ten on the day of release, in English and German.",
        "{customer} reads only what is marked as breaking.",
        "Reverted changes stay on the branch of {version}; compare with the tag.",
    ],
    steps: &[
        TopicStep { name: "list_changes", result: "{n} changes since the last tag", error: "tag {version} not found" },
        TopicStep { name: "draft_notes", result: "{n} lines", error: "change {big} has no description" },
        TopicStep { name: "check_links", result: "all {n} links work", error: "{n} links lead nowhere" },
    ],
    tools: &["git_log", "doc_editor", "translate"],
    tags: &["writing", "release"],
    shows: &[CanvasShow::Doc, CanvasShow::Doc, CanvasShow::Mail, CanvasShow::Diff],
    length: &[0.75, 0.2, 0.05],
};

pub(super) const FLAKES: Topic = Topic {
    name: "flaky tests",
    agent: 2,
    workflow: "calm_tests",
    reference: "CI",
    titles: &[
        "Test of {service} fails once in {n} runs",
        "Quarantine {n} tests before {version}",
        "Timeouts in the {city} build pool",
    ],
    situations: &[
        "The checkout test of {service} failed {n} times in {big} runs, never twice in a row.",
        "Before {version}, {n} tests were restarted by hand more than once.",
        "Builds in the {city} pool time out since {day}; the same commits pass elsewhere.",
    ],
    thoughts: &[
        "A test that passes on retry hides a race; find what it waits for.",
        "The pool in {city} got smaller disks on {day}.",
        "Order matters: it fails only after the import test.",
    ],
    successes: &[
        "The test waited for a clock; with an injected one {big} runs passed.",
        "Moved the build folder to the larger disk: no timeout in {n} hours.",
        "Found the shared fixture and gave each test its own.",
    ],
    failures: &["Raised the timeout; the test now fails more slowly.", "Could not reproduce it in {big} local runs."],
    insights: &[
        "Run the test alone and after each other test: the pair that fails names the culprit.",
        "A longer timeout is never the fix.",
        "Compare machines before comparing commits.",
    ],
    decisions: &["Inject the clock", "Quarantine until {day}", "Give each test its own fixture"],
    asks: &[
        "Can I just restart it?",
        "Which tests cost us the most time this week?",
        "Please take a look before {colleague} mutes it.",
    ],
    answers: &[
        "It fails only after the import test; they share a fixture.",
        "{n} tests cause most of the restarts; I listed them.",
        "The failing builds all ran in {city}.",
    ],
    corrections: &["Do not quarantine the payment tests.", "That was the network, not the test."],
    facts: &[
        "The {city} build pool has small disks.",
        "The import test of {service} leaves rows behind.",
        "Restarting by hand costs {n} minutes per build.",
    ],
    steps: &[
        TopicStep { name: "collect_runs", result: "{n} failures in {big} runs", error: "log of run {big} has expired" },
        TopicStep { name: "bisect_order", result: "fails after import_test", error: "no order fails twice" },
        TopicStep { name: "repeat_test", result: "{big} runs passed", error: "failed at run {n}" },
    ],
    tools: &["ci_api", "shell", "git_bisect"],
    tags: &["ci", "tests", "race"],
    shows: &[CanvasShow::Shell, CanvasShow::Bar, CanvasShow::Diff, CanvasShow::Board],
    length: &[0.55, 0.25, 0.13, 0.07],
};
