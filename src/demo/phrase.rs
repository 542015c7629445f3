//! Fills the slots of the demo's phrases, consistently within a story.

use super::chance::Chance;
use super::topics::Topic;
use super::world::DemoPerson;

const CUSTOMERS: &[&str] = &[
    "Alder & Sons", "Blue Fjord Shipping", "Cartwright Mills", "Delta Orchards", "Eastgate Clinic", "Fenwick Optics",
    "Granite Peak Energy", "Hollis Bakery Group", "Isar Robotics", "Juniper Textiles", "Kobayashi Ceramics",
    "Larkspur Hotels", "Meridian Rail", "Norrland Timber", "Ostara Foods", "Pinnacle Glass", "Quayside Museums",
    "Redwood Dental", "Silverlake Water", "Tamarind Spices", "Umber Studios", "Valmont Watches", "Westhaven Farms",
    "Yarrow Pharma", "Zephyr Bikes",
];

const CITIES: &[&str] = &[
    "Lisbon", "Gothenburg", "Osaka", "Leeds", "Hamburg", "Porto", "Denver", "Lyon", "Kraków", "Vancouver", "Accra",
    "Zürich", "Bologna", "Tallinn", "Austin", "Nairobi",
];

const SERVICES: &[&str] =
    &["ingest", "billing-api", "search-index", "mail-relay", "checkout", "sensor-hub", "auth-proxy", "report-writer"];

const FILES: &[&str] = &["export_{}.csv", "upload_{}.xlsx", "batch_{}.parquet", "dump_{}.json"];

/// Names of the days, Monday first.
pub const DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Words for the slots of one story, by the name of the slot.
#[derive(Debug, Clone)]
pub struct StoryWords([(&'static str, String); 15]);

impl StoryWords {
    /// The words of a story about `topic` for `user` that mentions `colleague` and takes place in `month`.
    pub fn new(
        chance: &mut Chance,
        topic: &Topic,
        user: &DemoPerson,
        colleague: &DemoPerson,
        month: String,
    ) -> StoryWords {
        let city = chance.below(CITIES.len() as u64) as usize;
        let other = (city + 1 + chance.below(CITIES.len() as u64 - 1) as usize) % CITIES.len();
        let amount = chance.between(40, 99_999);
        StoryWords([
            ("customer", (*chance.pick(CUSTOMERS)).to_owned()),
            ("city", CITIES[city].to_owned()),
            ("city2", CITIES[other].to_owned()),
            ("service", (*chance.pick(SERVICES)).to_owned()),
            ("version", format!("{}.{}.{}", chance.between(1, 7), chance.between(0, 24), chance.between(0, 9))),
            ("ref", format!("{}-{}", topic.reference, chance.between(10_000, 99_999))),
            ("file", chance.pick(FILES).replace("{}", &chance.between(100, 999).to_string())),
            ("month", month),
            ("day", (*chance.pick(&DAYS[..5])).to_owned()),
            ("amount", format!("{}.{:02} EUR", amount / 10, chance.between(0, 99))),
            ("user", user.first.to_owned()),
            ("phone", user.phone.clone()),
            ("colleague", colleague.name.clone()),
            ("colleague_first", colleague.first.to_owned()),
            ("colleague_mail", colleague.mail.clone()),
        ])
    }

    fn find(&self, slot: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| *name == slot).map(|(_, word)| word.as_str())
    }

    /// The word for a slot, such as `customer`.
    pub fn word(&self, slot: &str) -> &str {
        self.find(slot).unwrap_or_default()
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
            let range = match slot {
                "n" => Some((3, 29)),
                "big" => Some((110, 8_900)),
                "pct" => Some((4, 38)),
                "minute" => Some((10, 59)),
                _ => None,
            };
            match (range, self.find(slot)) {
                (Some((low, high)), _) => filled.push_str(&chance.between(low, high).to_string()),
                (None, Some(word)) => filled.push_str(word),
                (None, None) => filled.push_str(&format!("{{{slot}}}")),
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
            let words = StoryWords::new(&mut chance, topic, &user, &colleague, "May".to_owned());
            let steps = topic.steps.iter().flat_map(|s| [s.result, s.error]);
            let phrases = [
                &topic.titles, &topic.situations, &topic.thoughts, &topic.successes, &topic.failures, &topic.insights,
                &topic.decisions, &topic.asks, &topic.answers, &topic.corrections, &topic.facts,
            ];
            for phrase in phrases.into_iter().flatten().copied().chain(steps) {
                let filled = words.fill(phrase, &mut chance);
                assert!(!filled.contains(['{', '}']), "{}: {filled}", topic.name);
            }
        }
    }
}
