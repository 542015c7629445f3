//! Choices on the recall screen: rankings, saved questions, agents, users and policies.

use super::{RankingWay, RecallPick, RecallScreen, can_rank};
use crate::console::core::{Context, LayerOpening, Menu, MenuChoice, MenuItem, Request, RequestFailure, ToastTone};
use crate::memory::query::{Page, Query};
use crate::memory::{Entity, Row};
use crate::recall::inquiry::SavedQuestion;
use crate::recall::policy::Policy;
use crate::recall::rank::Ranking;

/// Most rows of a list to choose from.
const LISTED: usize = 200;

impl RecallScreen {
    /// Reads the lists to choose from, one after the other, when nothing more urgent is pending.
    pub(super) fn read_lists(&mut self, cx: &mut Context) {
        let busy = self.left.pending.is_some() || self.right.as_ref().is_some_and(|side| side.pending.is_some());
        if self.pending_list.is_some() || self.pending_saved.is_some() || busy {
            return;
        }
        if self.saved.is_none() {
            self.pending_saved = Some(cx.ask(Request::LoadSaved));
            return;
        }
        let next = self.wanted.iter().find(|entity| cx.holds(**entity).is_ok()).copied();
        if let Some(entity) = next {
            self.wanted.remove(&entity);
            let query = Query { limit: LISTED, ..Query::new(entity) };
            self.pending_list = Some((cx.ask(Request::LoadPage(Box::new(query))), entity));
        }
    }

    /// Takes a list to choose from. If it is missing, ids can still be typed.
    pub(super) fn take_list(&mut self, result: Result<Page, RequestFailure>, cx: &mut Context) {
        if let Some((_, entity)) = self.pending_list.take() {
            let rows = result.map(|page| page.rows).unwrap_or_default();
            cx.read_names(&rows);
            self.lists.insert(entity, rows);
        }
    }

    pub(super) fn take_saved(&mut self, result: Result<Vec<SavedQuestion>, RequestFailure>, cx: &mut Context) {
        let told = self.told.take();
        self.pending_saved = None;
        match result {
            Ok(saved) => {
                self.saved = Some(saved);
                told.into_iter().for_each(|told| cx.say(ToastTone::Good, told));
            }
            Err(failure) => {
                self.saved.get_or_insert_default();
                cx.fail(failure);
            }
        }
    }

    /// Requests a change of the saved questions; the new list is returned.
    pub(super) fn keep(&mut self, request: Request, told: String, cx: &mut Context) {
        cx.cancel(self.pending_saved.take());
        self.pending_saved = Some(cx.ask(request));
        self.told = Some(told);
    }

    /// Every ranking, with the reason if this database does not support it.
    fn ways(&self, cx: &Context) -> Vec<(RankingWay, String, Option<String>)> {
        let plain = Ranking::ALL.map(|ranking| {
            let missing = can_rank(cx, ranking).err().map(|(reason, _)| reason);
            (RankingWay::plain(ranking), ranking.formula().to_owned(), missing)
        });
        let bank = self.situation().and_then(|row| row.text("profile_id"));
        let mut policies: Vec<&Row> = self.lists.get(&Entity::Policy).into_iter().flatten().collect();
        // Another bank's would rank another bank's cases.
        policies.retain(|row| bank.is_none() || row.text("profile_id") == bank);
        let unusable = |row: &Row| Policy::parse(row.get("weights")).err();
        policies.sort_by_key(|row| (unusable(row).is_some(), std::cmp::Reverse(row.get("version").as_i64())));
        let learned = policies.into_iter().map(|row| {
            let version = row.get("version").as_i64();
            let way = RankingWay { ranking: Ranking::Cases, policy: Some(row.id().to_owned()), version };
            let missing = can_rank(cx, Ranking::Cases).err().map(|(reason, _)| reason);
            (way, policy_words(row, cx), missing.or_else(|| unusable(row)))
        });
        let missing = can_rank(cx, Ranking::Cases).err().map(|(reason, _)| reason);
        let without = (RankingWay::without_policy(), "cosine, or shared words, alone".to_owned(), missing);
        plain.into_iter().chain([without]).chain(learned).collect()
    }

    pub(super) fn offer_ways(&self, compare: bool, cx: &mut Context) {
        let pick =
            |way| MenuChoice::Recall(if compare { RecallPick::Compare(Some(way)) } else { RecallPick::Rank(way) });
        let mut items: Vec<MenuItem> = Vec::new();
        if compare && self.right.is_some() {
            items.push(item("nothing", "one ranking only", MenuChoice::Recall(RecallPick::Compare(None))));
        }
        for (way, note, unavailable) in self.ways(cx) {
            if compare && way == self.left.way {
                continue;
            }
            items.push(MenuItem { unavailable, ..item(&way.name(), &note, pick(way.clone())) });
        }
        let title = if compare { format!("Compare {} with", self.left.way.name()) } else { "Rank by".to_owned() };
        cx.show(LayerOpening::Menu(Menu::new(title, items)));
    }

    pub(super) fn offer_saved(&self, forget: bool, cx: &mut Context) {
        let masked = cx.masking.is_on();
        let items = self.saved.iter().flatten().map(|saved| {
            let pick =
                if forget { RecallPick::Forget(saved.name.clone()) } else { RecallPick::Run(Box::new(saved.clone())) };
            item(&saved.name, &saved_words(saved, masked), MenuChoice::Recall(pick))
        });
        let title = if forget { "Forget a saved question" } else { "Ask a saved question" };
        cx.show(LayerOpening::Menu(Menu::new(title, items.collect())));
    }

    pub(super) fn picked(&mut self, pick: RecallPick, cx: &mut Context) {
        match pick {
            RecallPick::Rank(way) => self.rank(way),
            RecallPick::Compare(way) => {
                let stopped = self.right.take().and_then(|side| side.pending);
                cx.cancel(stopped.map(|(ticket, _)| ticket));
                self.compare(way);
            }
            RecallPick::Run(saved) => {
                let (ranking, policy) = (saved.inquiry.ranking, saved.inquiry.policy.clone());
                self.rank(RankingWay { ranking, policy, version: None });
                self.inquiry = saved.inquiry;
                self.recorded = super::RecordedRecall::default();
            }
            RecallPick::Forget(name) => {
                let told = format!("{name} is forgotten");
                self.keep(Request::ForgetQuery(name), told, cx);
            }
        }
    }
}

pub(super) fn item(label: &str, note: &str, choice: MenuChoice) -> MenuItem {
    MenuItem { label: label.to_owned(), note: note.to_owned(), keys: String::new(), choice, unavailable: None }
}

fn policy_words(row: &Row, cx: &Context) -> String {
    let text = |column: &str| row.text(column).unwrap_or("none");
    let bank = cx.names.named_by(row, "profile_id").unwrap_or(text("profile_id"));
    format!("{bank}: {}", text("status"))
}

/// Describes a saved question; its text may be personal.
fn saved_words(saved: &SavedQuestion, masked: bool) -> String {
    let asked = &saved.inquiry;
    let mut words = vec![asked.ranking.name().to_owned()];
    words.extend(asked.like.iter().map(|id| format!("like {id}")));
    let text = |text: &String| if masked { format!("{} characters", text.chars().count()) } else { text.clone() };
    words.extend(asked.text.iter().map(text));
    words.join(": ")
}
