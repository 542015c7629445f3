//! The research scout's topics.

use super::{CanvasShow, Topic, TopicStep};

pub(super) const PRICING: Topic = Topic {
    name: "pricing proposal",
    agent: 4,
    workflow: "compare_prices",
    reference: "OFFER",
    titles: &[
        "Create a pricing proposal for {customer}",
        "What does the competition ask in {city}?",
        "Check the discount of {pct} % for {customer}",
    ],
    situations: &[
        "{customer} wants an offer for {big} seats by {day}; the last table had a wrong sum.",
        "Two competitors changed their prices in {month}; {user} wants to know what that means for us.",
        "Sales offers {customer} {pct} % off and asks whether that still pays.",
    ],
    thoughts: &[
        "In an earlier episode the table's sum was wrong: compute it twice.",
        "List prices say little; the offers that {colleague} collected say more.",
        "Below {pct} % margin this needs an approval.",
    ],
    successes: &[
        "Proposal over {amount} with sums checked twice; {user} sent it unchanged.",
        "At {pct} % the offer still pays from {big} seats on.",
        "Comparison of {n} competitors on one page, with sources.",
    ],
    failures: &[
        "The table's sum was off by {amount}; {user} corrected it before it went out.",
        "Quoted a price from last year's page.",
    ],
    insights: &[
        "Compute sums from the rows that are shown, never from the draft.",
        "Note the date beside every price that was looked up.",
    ],
    decisions: &["Tiered price", "Ask for approval below {pct} %", "Leave the discount out"],
    asks: &[
        "Can you draft the proposal for {customer}?",
        "Please double-check the sums this time.",
        "Where does this price come from?",
    ],
    answers: &[
        "The draft is on the canvas; both sums agree at {amount}.",
        "Prices are from {day}, each with its source.",
        "With {pct} % off, {big} seats are the break-even.",
    ],
    corrections: &["The sum in row {n} is wrong.", "Use the new price list.", "{customer} gets the partner rate."],
    facts: &[
        "{customer} has a partner rate of {pct} % below list.",
        "Prices on competitors' pages change on the first of the month.",
        "Proposals below {pct} % margin need an approval.",
    ],
    steps: &[
        TopicStep {
            name: "collect_prices",
            result: "{n} prices with date",
            error: "page of a competitor asks for a login",
        },
        TopicStep { name: "compute_table", result: "total {amount}", error: "row {n}: price is not a number" },
        TopicStep { name: "write_proposal", result: "{n} pages", error: "template {file} not found" },
    ],
    tools: &["web_search", "calculate", "doc_editor"],
    tags: &["pricing", "proposal", "competition"],
    shows: &[CanvasShow::Doc, CanvasShow::Sheet, CanvasShow::Bar],
    length: &[0.65, 0.22, 0.09, 0.04],
};

pub(super) const PAPERS: Topic = Topic {
    name: "literature review",
    agent: 4,
    workflow: "review_papers",
    reference: "LIT",
    titles: &[
        "Papers on sensor drift since {month}",
        "Summary of {n} papers for {user}",
        "Does the {city} study hold up?",
    ],
    situations: &[
        "{user} prepares a talk and needs the {n} papers of the year that matter on sensor drift.",
        "A study from {city} claims {pct} % less drift; {colleague} doubts the sample of {n}.",
        "The review of {month} missed a retraction.",
    ],
    thoughts: &[
        "A sample of {n} cannot carry an effect of {pct} %.",
        "Check for retractions before summarising.",
        "Three of the papers share one data set; count them once.",
    ],
    successes: &[
        "One page with {n} papers, what each adds and how sure it is.",
        "The effect shrinks to a third when the shared data set is counted once.",
    ],
    failures: &[
        "Cited a retracted paper; {colleague} noticed.",
        "The summary was too long; {user} closed it after a few seconds.",
    ],
    insights: &[
        "Look up retractions first.",
        "One line a paper is read; a page a paper is not.",
        "Group papers by data set, not by author.",
    ],
    decisions: &["One line a paper", "Leave preprints out", "Ask {colleague} to check the statistics"],
    asks: &["What should I have read this year?", "Is the effect real?", "Two pages at most, please."],
    answers: &[
        "{n} papers matter; three of them share one data set.",
        "The interval includes zero once the outlier is left out.",
        "I wrote one line a paper, the full notes are behind it.",
    ],
    corrections: &["That paper was retracted in {month}.", "Names first, then years."],
    facts: &[
        "The {city} study shares its data with two others.",
        "{user} reads one line a paper and nothing more.",
        "Preprints do not count in the yearly review.",
    ],
    steps: &[
        TopicStep { name: "search_papers", result: "{big} hits, {n} kept", error: "index refused the query" },
        TopicStep {
            name: "check_retractions",
            result: "1 of {n} retracted",
            error: "register of retractions is offline",
        },
        TopicStep { name: "summarise", result: "{n} lines", error: "paper {n} is behind a login" },
    ],
    tools: &["paper_search", "notes", "doc_editor"],
    tags: &["papers", "review", "statistics"],
    shows: &[CanvasShow::Doc, CanvasShow::Doc, CanvasShow::Line],
    length: &[0.5, 0.25, 0.15, 0.1],
};

pub(super) const SURVEY: Topic = Topic {
    name: "survey analysis",
    agent: 4,
    workflow: "analyse_survey",
    reference: "WAVE",
    titles: &[
        "What do {big} answers say about {service}?",
        "Survey of {customer}'s users in {month}",
        "Free text answers, {city} wave",
    ],
    situations: &[
        "The survey of {month} has {big} answers, {pct} % of them without free text.",
        "{user} wants to know whether people in {city} are less content than in {city2}.",
        "Half of the {n} questions were asked in a different order in {city}.",
    ],
    thoughts: &[
        "Different order of questions: compare only the first three.",
        "{pct} % is within the interval, so there is no difference to report.",
        "Free text names people; leave names out of the summary.",
    ],
    successes: &[
        "No difference between {city} and {city2} beyond chance; shown with intervals.",
        "Grouped {big} free texts into {n} themes; delivery time leads.",
    ],
    failures: &[
        "Reported a difference that was within chance; {user} rejected it.",
        "The summary quoted a person by name and was taken back.",
    ],
    insights: &["Always draw the interval.", "Remove names before grouping free text."],
    decisions: &["Report only what is beyond chance", "Leave names out", "Drop the {city} wave"],
    asks: &["Are people in {city} unhappier?", "What are the main themes?", "Can I show this to {customer}?"],
    answers: &[
        "The difference is {pct} points with an interval that includes zero.",
        "Delivery time is named most, by {n} of a hundred.",
        "Yes: names are removed and groups below five are hidden.",
    ],
    corrections: &["Please no names in the summary.", "Bars, not pies."],
    facts: &[
        "The {city} wave asked its questions in another order.",
        "Groups below five people are never shown.",
        "Free text answers of {month} contain names.",
    ],
    steps: &[
        TopicStep { name: "load_answers", result: "{big} answers", error: "column q{n} has two types" },
        TopicStep { name: "remove_names", result: "{n} names removed", error: "model for names is not loaded" },
        TopicStep { name: "group_themes", result: "{n} themes", error: "too few answers" },
    ],
    tools: &["statistics", "chart", "redact"],
    tags: &["survey", "statistics", "privacy"],
    shows: &[CanvasShow::Bar, CanvasShow::Line, CanvasShow::Custom],
    length: &[0.7, 0.2, 0.1],
};
