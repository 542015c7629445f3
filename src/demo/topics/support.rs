//! The support desk's topics.

use super::{CanvasShow, Topic, TopicStep};

pub(super) const DELIVERIES: Topic = Topic {
    name: "delayed deliveries",
    agent: 0,
    workflow: "track_and_answer",
    reference: "SO",
    titles: &[
        "Where is order {ref} for {customer}?",
        "{customer}: {n} parcels late to {city}",
        "Order {ref} held at customs in {city}",
        "Replacement for the lost parcel {ref}",
    ],
    situations: &[
        "{customer} writes that order {ref} should have been in {city} on {day}; tracking stopped {n} hours ago.",
        "The carrier reports {n} parcels for {customer} as delayed between {city} and {city2}.",
        "Order {ref} waits at customs in {city} because the invoice lacks a tariff number.",
        "{user} asks for the third time this week when {ref} will arrive.",
    ],
    thoughts: &[
        "The tracking page lags by up to six hours, so ask the carrier before promising a date.",
        "Last time {customer} preferred a replacement to a refund.",
        "If the parcel misses the {day} truck it will not leave {city} before Monday.",
        "A customs hold usually needs the commercial invoice and nothing else.",
    ],
    successes: &[
        "Carrier confirmed delivery in {city} on {day}; {user} informed with the new tracking link.",
        "Sent a replacement from the {city2} warehouse, arrives in {n} hours; {customer} accepted.",
        "Customs released {ref} after the corrected invoice was uploaded.",
    ],
    failures: &[
        "The carrier did not answer; {customer} still waits and asked for a refund.",
        "Promised {day}, which the carrier could not keep; escalated to the shift lead.",
        "Replacement shipped to the old address in {city}; it had to be called back.",
    ],
    insights: &[
        "Call the carrier's {city} depot directly: the hotline repeats what the tracking page says.",
        "Offer the replacement first when a parcel is older than five days.",
        "Check the address book before shipping again: {customer} moved to {city2}.",
    ],
    decisions: &[
        "Replace instead of refund",
        "Wait for the {day} scan before answering",
        "Escalate to the carrier's account manager",
    ],
    asks: &[
        "Can you find out where {ref} is? The customer is getting nervous.",
        "Please tell {customer} what happens with the {n} parcels.",
        "My contact is {colleague}, please keep {colleague_first} in the loop.",
    ],
    answers: &[
        "Tracking last saw it in {city}. I asked the depot and will report back within the hour.",
        "I drafted an answer to {customer}; it is on the canvas for your approval.",
        "The parcel was scanned in {city2} at 06:{minute}, so {day} is realistic.",
    ],
    corrections: &[
        "The order number is {ref}, not the one from last week.",
        "Do not promise a day, promise a window.",
        "{colleague_first} is the contact now, not me.",
    ],
    facts: &[
        "{customer} receives goods only between 7 and 11; later trucks are sent back.",
        "The {city} depot answers on its direct line, the hotline only reads the tracking page.",
        "Customs in {city} wants the tariff number on page one of the invoice.",
        "Parcels above {n} kg to {city2} go by truck and have no tracking after the hub.",
    ],
    steps: &[
        TopicStep {
            name: "fetch_tracking",
            result: "last scan {city}, {n} hours ago",
            error: "tracking service answered 503 for {ref}",
        },
        TopicStep { name: "find_order", result: "{ref}: {n} items for {customer}", error: "no order {ref}" },
        TopicStep { name: "ask_carrier", result: "new window: {day}, 8 to 12", error: "depot {city} did not answer" },
        TopicStep {
            name: "draft_answer",
            result: "draft of {big} characters",
            error: "template refers to a missing field",
        },
    ],
    tools: &["tracking_api", "crm_lookup", "send_mail"],
    tags: &["shipping", "carrier", "customs", "replacement"],
    shows: &[CanvasShow::Mail, CanvasShow::Sheet, CanvasShow::Doc],
    length: &[0.68, 0.2, 0.08, 0.04],
};

pub(super) const INVOICES: Topic = Topic {
    name: "invoice questions",
    agent: 0,
    workflow: "explain_invoice",
    reference: "INV",
    titles: &[
        "{customer} disputes invoice {ref}",
        "Explain the {month} invoice to {user}",
        "Double charge of {amount} on {ref}",
        "Credit note for {customer}, {month}",
    ],
    situations: &[
        "{customer} was charged {amount} twice in {month} and wants it back today.",
        "{user} does not understand why {ref} rose by {pct} % against the month before.",
        "Accounting at {customer} needs a credit note with their own reference.",
    ],
    thoughts: &[
        "The second charge looks like an authorisation that was never captured.",
        "A {pct} % rise fits the seats that were added on {day}.",
        "Credit notes above 1,000 euro need a second approval.",
    ],
    successes: &[
        "Showed that the second entry is a hold that expires on {day}; {user} agreed.",
        "Credit note over {amount} issued and sent to {customer}.",
        "Itemised {ref}: {n} seats added mid-month explain {pct} %.",
    ],
    failures: &[
        "Refunded {amount} although it was only a hold; finance had to reverse it.",
        "Quoted the list price instead of {customer}'s contract; the dispute stays open.",
    ],
    insights: &[
        "Ask the payment provider for the capture state before calling anything a double charge.",
        "A chart of seats over the month explains a rise faster than the item list.",
        "{customer} needs its purchase order on every credit note.",
    ],
    decisions: &["Issue a credit note", "Explain, do not refund", "Ask finance for the second approval"],
    asks: &[
        "Why is {ref} so much higher than last month?",
        "I see {amount} twice. Please fix it.",
        "Send the credit note to {colleague_mail}, please.",
    ],
    answers: &[
        "The rise comes from {n} seats added on {day}. I put the month on a chart.",
        "One of the two entries is a hold and will vanish by {day}.",
        "I prepared a credit note over {amount}; it needs one more approval.",
    ],
    corrections: &[
        "Our contract price is lower than what you quoted.",
        "Use euro, not dollars.",
        "The table is too long, a chart is enough.",
    ],
    facts: &[
        "{customer} pays by contract: list prices never apply.",
        "A hold on a card disappears after seven days and must not be refunded.",
        "Credit notes above 1,000 euro need two approvals.",
        "Invoices of {month} were sent twice because of a mail loop; only the second set is valid.",
    ],
    steps: &[
        TopicStep { name: "load_invoice", result: "{ref}: {n} items, {amount}", error: "invoice {ref} is locked" },
        TopicStep {
            name: "check_payments",
            result: "1 captured, 1 authorised",
            error: "payment provider timed out after 30 s",
        },
        TopicStep { name: "draw_chart", result: "{n} points", error: "no data for {month}" },
        TopicStep { name: "issue_credit_note", result: "note over {amount}", error: "second approval missing" },
    ],
    tools: &["billing_api", "payments_lookup", "chart"],
    tags: &["billing", "refund", "credit note"],
    shows: &[CanvasShow::Line, CanvasShow::Bar, CanvasShow::Sheet, CanvasShow::Mail],
    length: &[0.78, 0.16, 0.06],
};

pub(super) const DEVICES: Topic = Topic {
    name: "device setup",
    agent: 0,
    workflow: "guide_setup",
    reference: "GW",
    titles: &[
        "Gateway {ref} does not join the network",
        "Firmware {version} on {n} sensors in {city}",
        "First steps with the new scanner for {user}",
        "Scanner at {customer} reads every label twice",
    ],
    situations: &[
        "{user} unpacked gateway {ref}; the light blinks red after the {n}th attempt to join.",
        "{n} sensors at {customer} still run firmware older than {version} and lose readings at night.",
        "The scanners in {city} read each label twice since the update to {version}.",
    ],
    thoughts: &[
        "Red and slow means no address; red and fast means a wrong key.",
        "Update two sensors first, the rest after a night without losses.",
        "Reading twice is the known effect of a short debounce time.",
    ],
    successes: &[
        "Gateway joined after the key was typed by hand; readings arrive every minute.",
        "All {n} sensors run {version}; no reading lost in the night to {day}.",
        "Debounce set to 400 ms: every label is read once.",
    ],
    failures: &[
        "The gateway still blinks red; a technician visits on {day}.",
        "{n} sensors did not come back after the update and had to be reset on site.",
    ],
    insights: &[
        "The QR label of batch {ref} holds the old key: type it by hand.",
        "Never update all sensors of one floor at once.",
        "Ask for the blink pattern first; it saves ten minutes of questions.",
    ],
    decisions: &["Update in two waves", "Type the key instead of scanning it", "Send a technician"],
    asks: &[
        "The light is red again. What now?",
        "Can we update everything in {city} tonight?",
        "Which of the {n} sensors are still on the old firmware?",
    ],
    answers: &[
        "Please tell me whether it blinks slowly or fast.",
        "I would start with two sensors and look at the night's readings.",
        "I opened a setup form with what I know already; three fields are left.",
    ],
    corrections: &["It is the east building, not the west one.", "I have no ladder, remote steps only please."],
    facts: &[
        "Gateways of batch {ref} carry a label with an old key.",
        "A fast red light means a wrong key, a slow one means no address.",
        "Sensors on the {city} roof lose contact when more than {n} update together.",
    ],
    steps: &[
        TopicStep { name: "read_status", result: "offline for {n} minutes", error: "device {ref} unknown" },
        TopicStep {
            name: "push_config",
            result: "config {version} accepted",
            error: "device refused config {version}",
        },
        TopicStep { name: "restart_device", result: "back after {n} s", error: "no heartbeat after 300 s" },
    ],
    tools: &["device_shell", "firmware_store", "form"],
    tags: &["hardware", "firmware", "network"],
    shows: &[CanvasShow::Form, CanvasShow::Shell, CanvasShow::Doc],
    length: &[0.66, 0.22, 0.12],
};
