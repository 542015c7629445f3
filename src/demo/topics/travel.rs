//! The travel desk's topics.

use super::{CanvasShow, Topic, TopicStep};

pub(super) const REBOOKING: Topic = Topic {
    name: "rebooking flights",
    agent: 3,
    workflow: "rebook_trip",
    reference: "TRIP",
    titles: &[
        "Flight {city} to {city2} cancelled for {user}",
        "Move {ref} from {day} to the day after",
        "Missed connection in {city}",
        "Group of {n} from {city} to {city2}",
    ],
    situations: &[
        "The {day} flight from {city} to {city2} was cancelled; {user} must be there by nine.",
        "{user} wants to leave {city} a day later and keep the seat by the window.",
        "{n} colleagues miss their connection in {city} because of fog.",
    ],
    thoughts: &[
        "Basic fares cannot be changed, only cancelled within a day.",
        "The train takes four hours and arrives before the next flight.",
        "{user} likes the window and no calls before ten.",
    ],
    successes: &[
        "Rebooked to the evening flight via {city2}, seat {n}A, no extra fee.",
        "Took the train: arrives {minute} past eight, {amount} cheaper.",
        "All {n} travellers have a hotel and a seat on the first flight.",
    ],
    failures: &[
        "Changed a fare that cannot be changed; the airline kept {amount}.",
        "Booked the wrong {city} airport; {user} had to undo it at the counter.",
        "The waiting list did not move; {user} stayed in {city}.",
    ],
    insights: &[
        "Ask for the fare rules before offering a change.",
        "Name the airport, not only the city.",
        "Offer the train first below 600 km.",
    ],
    decisions: &["Train instead of plane", "Keep the return flight", "Ask {user} before paying any fee"],
    asks: &[
        "My flight is gone. What are my options?",
        "Please keep the window seat.",
        "Call me on {phone} if it has to be tonight.",
    ],
    answers: &[
        "There are two ways: the evening flight via {city2}, or the train at six.",
        "The change costs {amount}; shall I go ahead?",
        "Done. The new itinerary is in your mail.",
    ],
    corrections: &[
        "Not that airport, the one in the north.",
        "I said aisle, not window.",
        "Do not pay any fee without asking me.",
    ],
    facts: &[
        "{user} wants a window seat and no calls before ten.",
        "Basic fares from {city} can be cancelled within 24 hours, never changed.",
        "{city} has two airports; meetings are near the northern one.",
        "The train from {city} to {city2} takes four hours.",
    ],
    steps: &[
        TopicStep { name: "get_reservation", result: "{ref}: {n} passengers", error: "reservation {ref} not found" },
        TopicStep { name: "search_flights", result: "{n} connections", error: "fare service is down" },
        TopicStep { name: "change_booking", result: "new ticket issued", error: "fare rules forbid a change" },
        TopicStep { name: "notify_traveller", result: "mail to {user} sent", error: "mailbox of {user} is full" },
    ],
    tools: &["search_flights", "update_reservation", "send_mail"],
    tags: &["flights", "change", "urgent"],
    shows: &[CanvasShow::Form, CanvasShow::Sheet, CanvasShow::Mail],
    length: &[0.74, 0.18, 0.08],
};

pub(super) const HOTELS: Topic = Topic {
    name: "hotel bookings",
    agent: 3,
    workflow: "book_hotel",
    reference: "STAY",
    titles: &["Rooms in {city} for {n} people", "Hotel near {customer} in {city}", "Cancel the nights in {city2}"],
    situations: &[
        "{user} meets {customer} in {city} on {day} and needs a quiet room within walking distance.",
        "The workshop in {city} grew to {n} people; the hotel has fewer rooms.",
        "The trip to {city2} is off; {n} nights can be cancelled until tonight.",
    ],
    thoughts: &[
        "The house by the station is near but loud.",
        "Above {amount} a night the policy asks for a reason.",
        "Free cancellation ends at six in the hotel's own time zone.",
    ],
    successes: &[
        "Booked {n} rooms in two houses, five minutes apart.",
        "Quiet room to the courtyard, ten minutes on foot from {customer}.",
        "Cancelled in time, nothing to pay.",
    ],
    failures: &[
        "Cancelled an hour too late: {amount} to pay.",
        "The room faced the street; {user} moved after one night.",
    ],
    insights: &[
        "Compute the cancellation deadline in the hotel's time zone.",
        "Ask for the courtyard side in writing.",
    ],
    decisions: &["Two houses instead of one", "Pay for free cancellation", "Ask {colleague} for approval"],
    asks: &["Something quiet, please.", "Is breakfast included?", "Put it on the account of {customer}."],
    answers: &[
        "I found {n} rooms; two are above the policy.",
        "Free cancellation ends at six on {day}, their time.",
        "Please fill in the last two fields of the form.",
    ],
    corrections: &["Single rooms, not doubles.", "The other {city}, the one on the coast."],
    facts: &[
        "The house by the station in {city} is loud on the street side.",
        "{customer} has a rate of {amount} a night in {city}.",
        "Rooms above the policy need a reason and {colleague}'s approval.",
    ],
    steps: &[
        TopicStep { name: "search_hotels", result: "{n} houses", error: "no answer from the booking site" },
        TopicStep { name: "check_policy", result: "within policy", error: "{amount} is above the policy" },
        TopicStep { name: "book_room", result: "confirmation {ref}", error: "the last room was just sold" },
    ],
    tools: &["search_hotels", "policy_check", "form"],
    tags: &["hotel", "policy"],
    shows: &[CanvasShow::Form, CanvasShow::Sheet, CanvasShow::Form],
    length: &[0.85, 0.12, 0.03],
};

pub(super) const EXPENSES: Topic = Topic {
    name: "travel expenses",
    agent: 3,
    workflow: "file_expenses",
    reference: "EXP",
    titles: &["Expenses of the {city} trip", "Receipt over {amount} is missing", "Per diem for {n} days in {city2}"],
    situations: &[
        "{user} came back from {city} with {n} receipts, two of them unreadable.",
        "The card shows {amount} in {city2} for which there is no receipt.",
        "Finance sent the claim of {day} back: the per diem is wrong.",
    ],
    thoughts: &[
        "A half day counts from noon on.",
        "For a lost receipt a signed statement is enough below 50 euro.",
        "The amount on the card includes the fee for foreign currency.",
    ],
    successes: &[
        "Claim over {amount} filed with {n} receipts; approved the same day.",
        "Per diem corrected to {n} half days.",
    ],
    failures: &[
        "Read {amount} from a blurred receipt; it was a tenth of that.",
        "Claim returned: the hotel's breakfast was not deducted.",
    ],
    insights: &[
        "Show the receipt beside the amount and let the traveller confirm it.",
        "Deduct breakfast before computing the per diem.",
    ],
    decisions: &["Statement instead of receipt", "Deduct breakfast", "Split by project"],
    asks: &["Here are my receipts.", "What is still missing?", "How much do I get for {city}?"],
    answers: &[
        "I read {n} receipts; two need a look.",
        "The claim is ready; please confirm the three amounts on the form.",
        "{n} days in {city} with breakfast make {amount}.",
    ],
    corrections: &["That is {amount}, not ten times as much.", "Project number is {ref}."],
    facts: &[
        "Below 50 euro a signed statement replaces a receipt.",
        "Breakfast is deducted from the per diem of {city}.",
        "{user} splits trips to {city2} between two projects.",
    ],
    steps: &[
        TopicStep { name: "read_receipts", result: "{n} read, 2 unsure", error: "image is too dark" },
        TopicStep { name: "compute_per_diem", result: "{amount}", error: "no rate for {city2} in {month}" },
        TopicStep { name: "file_claim", result: "claim {ref}", error: "project number missing" },
    ],
    tools: &["ocr", "calculate", "form"],
    tags: &["expenses", "receipts"],
    shows: &[CanvasShow::Form, CanvasShow::Sheet, CanvasShow::Form],
    length: &[0.8, 0.15, 0.05],
};
