//! The finance clerk's topics.

use super::{CanvasShow, Topic, TopicStep};

pub(super) const CLOSE: Topic = Topic {
    name: "month-end close",
    agent: 5,
    workflow: "close_month",
    reference: "JRN",
    titles: &[
        "Close of {month}: {n} open items",
        "Accruals for {customer} in {month}",
        "Difference of {amount} in the clearing account",
        "Reconcile {file}",
    ],
    situations: &[
        "The close of {month} waits for {n} open items; the clearing account is off by {amount}.",
        "{customer} was billed in {month} for work that continues; an accrual is missing.",
        "{file} from the bank has {n} lines without a match.",
    ],
    thoughts: &[
        "A difference that is divisible by nine is two digits swapped.",
        "Look at the last day of the month first, there most items go wrong.",
        "The accrual of last month was never reversed.",
    ],
    successes: &[
        "Found two swapped digits in {ref}; the clearing account is at zero.",
        "{month} closed on day {n} with no open item.",
        "Accrual over {amount} booked and its reversal scheduled.",
    ],
    failures: &["Booked the accrual twice; {colleague} reversed one.", "{n} lines of {file} stay without a match."],
    insights: &[
        "Divide a difference by nine before searching for it.",
        "Schedule the reversal together with the accrual.",
        "Match by amount and date first, by text last.",
    ],
    decisions: &["Book an accrual", "Carry {n} items over", "Ask the bank about {ref}"],
    asks: &["How far are we with {month}?", "Where do the {amount} come from?", "Can I sign it off today?"],
    answers: &[
        "{n} items are open; the largest is {ref}.",
        "The difference is two swapped digits in {ref}.",
        "Everything is booked; the board shows what waits for you.",
    ],
    corrections: &["Cost centre is wrong, it belongs to {city}.", "Reverse it on the first, not on the last day."],
    facts: &[
        "Differences divisible by nine are swapped digits.",
        "{customer} is billed in advance: accrue every month.",
        "The bank's file {file} repeats the last line of the day before.",
    ],
    steps: &[
        TopicStep { name: "load_statement", result: "{n} lines", error: "{file} has the wrong date format" },
        TopicStep { name: "match_lines", result: "{n} without a match", error: "two bookings match line {n}" },
        TopicStep { name: "book_accrual", result: "{ref} over {amount}", error: "period {month} is closed" },
        TopicStep { name: "sign_off", result: "waits for {colleague}", error: "{n} items still open" },
    ],
    tools: &["ledger", "bank_import", "board"],
    tags: &["close", "accrual", "bank"],
    shows: &[CanvasShow::Board, CanvasShow::Sheet, CanvasShow::Sheet, CanvasShow::Bar],
    length: &[0.3, 0.25, 0.2, 0.15, 0.1],
};

pub(super) const REMINDERS: Topic = Topic {
    name: "payment reminders",
    agent: 5,
    workflow: "remind_payment",
    reference: "INV",
    titles: &["{customer} owes {amount} since {month}", "Second reminder for {ref}", "Payment plan for {customer}"],
    situations: &[
        "{ref} over {amount} is {n} days late; {customer} has always paid before.",
        "{customer} asks for a plan of {n} instalments.",
        "{colleague} of {customer} says that {ref} was paid on {day}.",
    ],
    thoughts: &[
        "A customer who always paid deserves a call before a second reminder.",
        "The payment may sit in the clearing account under another reference.",
        "Instalments above {n} months need an approval.",
    ],
    successes: &[
        "Payment found under the wrong reference; no reminder was sent.",
        "Plan of {n} instalments agreed with {customer}.",
        "{customer} paid {amount} after the call.",
    ],
    failures: &[
        "Sent a reminder for an invoice that was paid; apologised to {customer}.",
        "No answer after the second reminder; handed over.",
    ],
    insights: &[
        "Search the clearing account before reminding anyone.",
        "A call by {user} works better than a second mail.",
    ],
    decisions: &["Call before the second reminder", "Offer instalments", "Hand over to the lawyer"],
    asks: &[
        "Has {customer} paid?",
        "Please remind them, but politely.",
        "Write to {colleague_mail}, that is their bookkeeper.",
    ],
    answers: &[
        "{ref} is still open; I searched the clearing account too.",
        "I drafted a friendly reminder, please approve it.",
        "They paid on {day} under another reference; I moved it.",
    ],
    corrections: &["They paid already!", "Friendlier, please; they are our oldest customer."],
    facts: &[
        "{customer} pays under its own order number, search the clearing account for it.",
        "{colleague} keeps the books of {customer}.",
        "Instalments above {n} months need an approval.",
    ],
    steps: &[
        TopicStep { name: "list_overdue", result: "{n} invoices", error: "ledger is locked for the close" },
        TopicStep { name: "search_clearing", result: "no payment found", error: "search timed out" },
        TopicStep { name: "draft_reminder", result: "draft to {colleague}", error: "no address for {customer}" },
    ],
    tools: &["ledger", "send_mail"],
    tags: &["dunning", "payment"],
    shows: &[CanvasShow::Mail, CanvasShow::Mail, CanvasShow::Sheet],
    length: &[0.72, 0.2, 0.08],
};

pub(super) const TAXES: Topic = Topic {
    name: "tax forms",
    agent: 5,
    workflow: "fill_tax_form",
    reference: "TAX",
    titles: &[
        "Help {user} file the tax form",
        "Travel allowance in the {month} return",
        "Form {ref}: three fields left",
    ],
    situations: &[
        "{user} has to file form {ref} by {day} and has no income statement at hand.",
        "The return of {month} came back: the address does not match.",
        "Form {ref} was filled in half and left {n} days ago.",
    ],
    thoughts: &[
        "Pre-fill name and address from last year and ask only for the rest.",
        "The user stopped last time because the income statement was missing.",
        "The office rejects addresses that are not spelled like in the register.",
    ],
    successes: &[
        "Form {ref} pre-filled and submitted; {n} of {n} fields complete.",
        "Address corrected after the register; the return was accepted.",
    ],
    failures: &[
        "{user} filled in name and address and stopped at the income.",
        "Submitted with last year's address; the office sent it back.",
    ],
    insights: &[
        "Ask for the income statement before opening the form.",
        "Pre-fill what is known and leave only the open fields.",
    ],
    decisions: &["Pre-fill from last year", "Wait for the income statement", "Use the register's spelling"],
    asks: &[
        "Can you fill in what you know?",
        "I do not have my income statement with me.",
        "My address changed, I live in {city} now.",
    ],
    answers: &[
        "Name and address are filled in; the income is left.",
        "I kept the form; we can go on when you have the statement.",
        "The register spells your street differently, I used that.",
    ],
    corrections: &["I stopped because I did not have my income statement.", "The street is spelled with ss."],
    facts: &[
        "{user} files form {ref} every {month}.",
        "The office compares addresses letter by letter with the register.",
        "Forms that are left are kept for {n} days.",
    ],
    steps: &[
        TopicStep { name: "load_last_year", result: "{n} fields known", error: "no return of last year" },
        TopicStep { name: "prefill_form", result: "{n} fields filled", error: "field income has no source" },
        TopicStep { name: "submit_form", result: "receipt {ref}", error: "address does not match the register" },
    ],
    tools: &["form", "register_lookup"],
    tags: &["tax", "form", "personal"],
    shows: &[CanvasShow::Form, CanvasShow::Form, CanvasShow::Doc],
    length: &[0.6, 0.3, 0.1],
};
