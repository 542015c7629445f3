//! Fills the slots of the demo's phrases, consistently within a story.

use super::chance::Chance;
use super::topics::Topic;
use super::world::DemoPerson;

const CUSTOMERS: &[&str] = &[
    "Alder & Sons",
    "Blue Fjord Shipping",
    "Cartwright Mills",
    "Delta Orchards",
    "Eastgate Clinic",
    "Fenwick Optics",
    "Granite Peak Energy",
    "Hollis Bakery Group",
    "Isar Robotics",
    "Juniper Textiles",
    "Kobayashi Ceramics",
    "Larkspur Hotels",
    "Meridian Rail",
    "Norrland Timber",
    "Ostara Foods",
    "Pinnacle Glass",
    "Quayside Museums",
    "Redwood Dental",
    "Silverlake Water",
    "Tamarind Spices",
    "Umber Studios",
    "Valmont Watches",
    "Westhaven Farms",
    "Yarrow Pharma",
    "Zephyr Bikes",
];

const CITIES: &[&str] = &[
    "Lisbon",
    "Gothenburg",
    "Osaka",
    "Leeds",
    "Hamburg",
    "Porto",
    "Denver",
    "Lyon",
    "Kraków",
    "Vancouver",
    "Accra",
    "Zürich",
    "Bologna",
    "Tallinn",
    "Austin",
    "Nairobi",
];

const SERVICES: &[&str] =
    &["ingest", "billing-api", "search-index", "mail-relay", "checkout", "sensor-hub", "auth-proxy", "report-writer"];

const FILES: &[&str] = &["export_{}.csv", "upload_{}.xlsx", "batch_{}.parquet", "dump_{}.json"];

/// Names of the months.
pub const MONTHS: &[&str] = &[
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Names of the days, Monday first.
pub const DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Words for the slots of one story.
#[derive(Debug, Clone)]
pub struct StoryWords {
    /// The customer that it is about.
    pub customer: &'static str,
    /// City of the story.
    pub city: &'static str,
    city2: &'static str,
    /// The software that it is about.
    pub service: &'static str,
    version: String,
    /// Number of the order, invoice, device, … that it is about.
    pub reference: String,
    file: String,
    month: &'static str,
    day: &'static str,
    amount: String,
    user: &'static str,
    phone: String,
    /// Full name of a colleague mentioned in it.
    pub colleague: String,
    colleague_first: &'static str,
    colleague_mail: String,
}

impl StoryWords {
    /// The words of a story about `topic` for `user` that mentions `colleague` and takes place in `month` (0..12).
    pub fn new(
        chance: &mut Chance,
        topic: &Topic,
        user: &DemoPerson,
        colleague: &DemoPerson,
        month: usize,
    ) -> StoryWords {
        let city = chance.below(CITIES.len() as u64) as usize;
        let other = (city + 1 + chance.below(CITIES.len() as u64 - 1) as usize) % CITIES.len();
        let amount = chance.between(40, 99_999);
        StoryWords {
            customer: chance.pick::<&str>(CUSTOMERS),
            city: CITIES[city],
            city2: CITIES[other],
            service: chance.pick::<&str>(SERVICES),
            version: format!("{}.{}.{}", chance.between(1, 7), chance.between(0, 24), chance.between(0, 9)),
            reference: format!("{}-{}", topic.reference, chance.between(10_000, 99_999)),
            file: chance.pick(FILES).replace("{}", &chance.between(100, 999).to_string()),
            month: MONTHS.get(month).copied().unwrap_or("March"),
            day: chance.pick::<&str>(&DAYS[..5]),
            amount: format!("{}.{:02} EUR", amount / 10, chance.between(0, 99)),
            user: user.first,
            phone: user.phone.clone(),
            colleague: colleague.name.clone(),
            colleague_first: colleague.first,
            colleague_mail: colleague.mail.clone(),
        }
    }

    /// The phrase with its slots filled. Small numbers are drawn anew each time; an unknown slot keeps its braces.
    pub fn fill(&self, phrase: &str, chance: &mut Chance) -> String {
        let mut filled = String::with_capacity(phrase.len() + 48);
        let mut rest = phrase;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let Some((slot, after)) = after.split_once('}') else {
                filled.push('{');
                rest = after;
                break;
            };
            match slot {
                "customer" => filled.push_str(self.customer),
                "city" => filled.push_str(self.city),
                "city2" => filled.push_str(self.city2),
                "service" => filled.push_str(self.service),
                "version" => filled.push_str(&self.version),
                "ref" => filled.push_str(&self.reference),
                "file" => filled.push_str(&self.file),
                "month" => filled.push_str(self.month),
                "day" => filled.push_str(self.day),
                "amount" => filled.push_str(&self.amount),
                "user" => filled.push_str(self.user),
                "phone" => filled.push_str(&self.phone),
                "colleague" => filled.push_str(&self.colleague),
                "colleague_first" => filled.push_str(self.colleague_first),
                "colleague_mail" => filled.push_str(&self.colleague_mail),
                "n" => filled.push_str(&chance.between(3, 29).to_string()),
                "big" => filled.push_str(&chance.between(110, 8_900).to_string()),
                "pct" => filled.push_str(&chance.between(4, 38).to_string()),
                "minute" => filled.push_str(&chance.between(10, 59).to_string()),
                unknown => {
                    filled.push('{');
                    filled.push_str(unknown);
                    filled.push('}');
                }
            }
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// One of the phrases, filled.
    pub fn say(&self, phrases: &[&str], chance: &mut Chance) -> String {
        let phrase = chance.pick(phrases);
        self.fill(phrase, chance)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{topics::TOPICS, world};
    use super::*;

    #[test]
    fn every_slot_of_every_topic_is_known() {
        let (user, colleague) = (world::person(1, 1), world::person(2, 1));
        let mut chance = Chance::new(1, "test", 1);
        assert_eq!(TOPICS.len(), 18, "the file is read");
        for topic in TOPICS.iter() {
            let words = StoryWords::new(&mut chance, topic, &user, &colleague, 4);
            let steps = topic.steps.iter().flat_map(|s| [s.result, s.error]);
            let phrases = [
                &topic.titles,
                &topic.situations,
                &topic.thoughts,
                &topic.successes,
                &topic.failures,
                &topic.insights,
                &topic.decisions,
                &topic.asks,
                &topic.answers,
                &topic.corrections,
                &topic.facts,
            ];
            for phrase in phrases.into_iter().flatten().copied().chain(steps) {
                let filled = words.fill(phrase, &mut chance);
                assert!(!filled.contains(['{', '}']), "{}: {filled}", topic.name);
            }
        }
    }
}
