//! The data steward's topics.

use super::{CanvasShow, Topic, TopicStep};

pub(super) const DUPLICATES: Topic = Topic {
    name: "duplicate customer records",
    agent: 1,
    workflow: "merge_records",
    reference: "CRM",
    titles: &[
        "Merge {n} records of {customer}",
        "Duplicates after the import of {file}",
        "Is {customer} in {city} the same as in {city2}?",
        "Undo the merge of {customer}",
    ],
    situations: &[
        "The import of {file} left {big} pairs of customers that share a mail address.",
        "{customer} exists {n} times, with offices in {city} and {city2}.",
        "{user} says that two different branches of {customer} were merged on {day}.",
    ],
    thoughts: &[
        "Same tax number means the same company; same phone does not.",
        "Branches in {city} and {city2} bill separately, so they must stay apart.",
        "Keep the older id: {n} other tables point at it.",
    ],
    successes: &[
        "Merged {n} records of {customer} into the oldest; no reference was lost.",
        "Marked {big} pairs as the same by tax number and left {n} for a person.",
        "Kept both branches and linked them under one parent.",
    ],
    failures: &[
        "Merged the branches in {city} and {city2}, which bill separately; the merge was undone.",
        "Stopped after {n} pairs: the tax numbers in {file} are shifted by one row.",
    ],
    insights: &[
        "Match on tax number first, on mail address only to confirm.",
        "Ask before merging records whose last orders are less than a month apart.",
        "Show the two records side by side; a list of pairs gets approved unread.",
    ],
    decisions: &["Keep the older id", "Leave branches apart", "Ask a person about the last {n} pairs"],
    asks: &[
        "How many duplicates are left after {file}?",
        "Please do not merge anything that {colleague} owns.",
        "Show me the pairs you are unsure about.",
    ],
    answers: &[
        "{big} pairs share a tax number; {n} share only a phone number and need you.",
        "I put the unsure pairs on a sheet, the surest first.",
        "Both point to {city}, but the invoices go to different people.",
    ],
    corrections: &[
        "Those are two branches, please split them again.",
        "{colleague} left, the owner is {user} now.",
        "Keep the name with the accent.",
    ],
    facts: &[
        "{customer} has separate books in {city} and {city2}; never merge them.",
        "Files named like {file} come with shifted tax numbers.",
        "The CRM keeps the older id when two records are merged.",
        "A shared phone number is no proof: {customer} rents desks.",
    ],
    steps: &[
        TopicStep { name: "find_pairs", result: "{big} pairs", error: "index on tax_number is being rebuilt" },
        TopicStep { name: "score_pairs", result: "{n} unsure", error: "row {big}: tax number is not text" },
        TopicStep { name: "merge", result: "{n} merged, 0 references lost", error: "record is locked by {colleague}" },
    ],
    tools: &["sql", "crm_merge", "sheet"],
    tags: &["quality", "crm", "merge"],
    shows: &[CanvasShow::Sheet, CanvasShow::Sheet, CanvasShow::Bar, CanvasShow::Board],
    length: &[0.7, 0.18, 0.08, 0.04],
};

pub(super) const LOADS: Topic = Topic {
    name: "late warehouse loads",
    agent: 1,
    workflow: "repair_load",
    reference: "JOB",
    titles: &[
        "Load of {file} is {n} hours late",
        "Rows missing in the {month} load",
        "{service} writes times without a zone",
        "Replay the {day} load for {customer}",
    ],
    situations: &[
        "The nightly load of {file} did not finish by six; {n} dashboards show yesterday.",
        "The load of {day} has {big} rows fewer than the source.",
        "Since {version}, {service} writes local times and the hourly totals are off by one hour.",
    ],
    thoughts: &[
        "A gap of exactly one hour smells of daylight saving, not of lost rows.",
        "Replaying is safe: the load is keyed by source and offset.",
        "The lock was held by the backup, which moved to the same hour.",
    ],
    successes: &[
        "Replayed the {day} load: {big} rows came in, totals match the source.",
        "Moved the backup to four o'clock; the load now ends at {minute} past five.",
        "Converted the times of {service} on read and asked its owners to send the zone.",
    ],
    failures: &[
        "The replay hit the same lock and was stopped after {n} minutes.",
        "Rows were loaded twice for {customer}; {colleague} removed them by hand.",
    ],
    insights: &[
        "Compare counts per hour, not per day: the hole shows at once.",
        "Replay only after checking that the offsets are unique.",
        "The backup's window moves with the size of the database; do not plan next to it.",
    ],
    decisions: &["Replay from the stored offset", "Move the backup", "Convert on read until {version} is fixed"],
    asks: &[
        "Why do the dashboards show yesterday?",
        "Can you replay {day} without touching the rest?",
        "Who has to change something so that this stops?",
    ],
    answers: &[
        "The load waited {n} minutes for a lock that the backup held.",
        "The missing rows are all between 02:00 and 03:00, which hints at the clock change.",
        "I can replay {file} from offset {big}; it takes about {n} minutes.",
    ],
    corrections: &["Totals are in local time on purpose, do not convert them.", "Please replay the test system first."],
    facts: &[
        "Loads are keyed by source and offset and can be replayed at any time.",
        "{service} writes local times since {version}.",
        "The backup holds a lock on the staging tables for about {n} minutes.",
    ],
    steps: &[
        TopicStep {
            name: "compare_counts",
            result: "{big} rows missing",
            error: "source {service} refused the connection",
        },
        TopicStep {
            name: "find_lock",
            result: "held by the backup for {n} minutes",
            error: "view of locks needs more rights",
        },
        TopicStep { name: "replay_load", result: "{big} rows loaded", error: "lock timeout after {n} s" },
        TopicStep { name: "verify_totals", result: "difference 0", error: "difference of {n} rows" },
    ],
    tools: &["sql", "scheduler", "chart"],
    tags: &["warehouse", "pipeline", "time zones"],
    shows: &[CanvasShow::Line, CanvasShow::Shell, CanvasShow::Sheet],
    length: &[0.6, 0.22, 0.12, 0.06],
};

pub(super) const DASHBOARD: Topic = Topic {
    name: "sales dashboard",
    agent: 1,
    workflow: "answer_with_chart",
    reference: "REV",
    titles: &[
        "Show me sales data for {month}",
        "Engagement of {customer} by week",
        "Why did {city} fall by {pct} %?",
        "Pipeline by region for {user}",
    ],
    situations: &[
        "{user} wants to see how {month} compares with the year before, before the call at nine.",
        "Sales in {city} fell by {pct} % in {month} while {city2} rose.",
        "The weekly review needs the engagement of {n} key accounts, {customer} among them.",
    ],
    thoughts: &[
        "Spreadsheets were closed within seconds in the last episodes; show a chart.",
        "One order of {amount} moved from {month} to the next month and explains most of it.",
        "{user} asks for totals first, so put them above the chart.",
    ],
    successes: &[
        "Presented a bar chart; {user} looked at it for a while and shared it.",
        "The fall is one order of {amount} that was booked in the next month.",
        "Line chart of {n} weeks with totals on top, saved as the standard view.",
    ],
    failures: &[
        "Presented a sheet of {big} rows; it was closed after two seconds.",
        "The chart mixed booked and billed amounts; {user} had to correct it.",
    ],
    insights: &[
        "Charts are looked at, sheets are closed: lead with a chart.",
        "Say whether amounts are booked or billed, in the title.",
        "Totals first, then the trend, the details only on request.",
    ],
    decisions: &["Bar chart instead of a sheet", "Use billed amounts", "Leave test accounts out"],
    asks: &["Show me the sales of {month}, please.", "What happened in {city}?", "Is that booked or billed?"],
    answers: &[
        "Here is {month} by week; the total is {amount}.",
        "{city} is down {pct} %, nearly all of it one order of {customer}.",
        "These are billed amounts; I can switch to booked ones.",
    ],
    corrections: &[
        "Billed, not booked.",
        "Leave the test accounts out.",
        "Great chart, but the axis should start at zero.",
    ],
    facts: &[
        "The weekly review uses billed amounts without test accounts.",
        "{customer} books in {month} and pays a quarter later.",
        "{city} and {city2} swapped {n} accounts in {month}; compare them together.",
        "Amounts of the partner channel arrive {n} days late.",
    ],
    steps: &[
        TopicStep { name: "query_sales", result: "{big} rows", error: "query was cancelled after 30 s" },
        TopicStep { name: "choose_chart", result: "bar chart, totals on top", error: "no numeric column" },
        TopicStep { name: "present", result: "shown to {user}", error: "canvas was closed before it was drawn" },
    ],
    tools: &["sql", "chart", "share_link"],
    tags: &["sales", "chart", "review"],
    shows: &[CanvasShow::Line, CanvasShow::Bar, CanvasShow::Sheet, CanvasShow::Bar, CanvasShow::Custom],
    length: &[0.82, 0.14, 0.04],
};
