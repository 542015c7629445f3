//! Links of a row: to rows that it names or that name it, and to lists of similar rows.

use super::detail::{Detail, relations};
use crate::console::core::{
    Conditions, Content, Context, Destination, LayerOpening, Menu, MenuChoice, MenuItem, Relation, ToastTone, row_name,
};
use crate::console::view::words;
use crate::memory::query::EpisodeContext;
use crate::memory::{Entity, Row};

/// Offers the links of a detail.
pub fn offer(detail: &Detail, cx: &mut Context) {
    let item = |mut link: RowLink| {
        if let Destination::Row(entity, id) = &link.to
            && let Some(name) = cx.names.of(*entity, id).filter(|_| link.name == *id)
        {
            name.clone_into(&mut link.name);
        }
        let missing = link.to.entity().and_then(|entity| cx.holds(entity).err());
        MenuItem {
            label: link.name,
            note: link.relation,
            keys: String::new(),
            choice: MenuChoice::Go(link.to),
            unavailable: missing.map(|m| m.reason.clone().unwrap_or_default()),
        }
    };
    let links = words::in_zone(&cx.settings.zone, cx.now, || links(detail));
    let items: Vec<MenuItem> = links.into_iter().map(item).collect();
    if items.is_empty() {
        cx.say(ToastTone::Info, "this row leads nowhere");
    } else {
        cx.show(LayerOpening::Menu(Menu::new("Follow", items)));
    }
}

/// A link that leads on from a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowLink {
    /// Relation of the target to the row, and its time: several rows may have the same name.
    pub relation: String,
    /// Name of the target.
    pub name: String,
    /// Destination of the link.
    pub to: Destination,
}

fn to_row(relation: &str, row: &Row) -> Option<RowLink> {
    let to = Destination::Row(row.entity, row.id().to_owned());
    let when = row.text(row.entity.time_column()).map(|at| format!(" {}", words::short_time(at).as_str()));
    let relation = format!("{relation}{}", when.unwrap_or_default());
    (!row.id().is_empty()).then(|| RowLink { relation, name: row_name(row), to })
}

/// Collects the links that lead on from a detail.
pub fn links(detail: &Detail) -> Vec<RowLink> {
    let Some(row) = detail.row() else { return Vec::new() };
    let mut links = match &detail.content {
        Some(Content::Episode(context)) => of_episode(context),
        _ => Vec::new(),
    };
    for group in &detail.related {
        links.extend(group.rows.iter().filter_map(|related| match related.entity {
            // A link between two rows leads to the other one.
            Entity::MemoryLink => named_id("used by episode", Entity::Episode, related.text("episode_id")),
            _ => to_row(&group.title, related),
        }));
    }
    let is_whole = |title: &str| detail.related.iter().any(|group| group.title == title && !group.more);
    for (title, relation) in relations(row) {
        // If each of them is offered, a link to their list is redundant.
        if let Relation::List(query) = relation
            && !is_whole(&title)
        {
            let conditions = Conditions { filters: query.filters, canvas: None };
            let name = format!("all {title}");
            links.push(RowLink { relation: "list".to_owned(), name, to: Destination::List(query.entity, conditions) });
        }
    }
    links.extend(of_any(row));
    links
}

fn named_id(relation: &str, entity: Entity, id: Option<&str>) -> Option<RowLink> {
    let id = id.filter(|id| !id.is_empty())?;
    let to = Destination::Row(entity, id.to_owned());
    Some(RowLink { relation: relation.to_owned(), name: id.to_owned(), to })
}

/// The agent, the person and the lists of like rows.
fn of_any(row: &Row) -> Vec<RowLink> {
    let mut links: Vec<Option<RowLink>> = Vec::new();
    if row.entity != Entity::Agent {
        links.push(named_id("agent", Entity::Agent, row.text("agent_id")));
    }
    if row.entity != Entity::Subject {
        links.push(named_id("subject", Entity::Subject, row.text("user_id")));
    }
    let same: &[&'static str] = match row.entity {
        Entity::Episode => &["agent_id", "user_id", "session_id", "topic", "workflow_name"],
        Entity::Case | Entity::Feedback | Entity::Access => &["agent_id", "user_id"],
        Entity::CanvasEvent => &["canvas_id", "canvas_type", "user_id"],
        Entity::WorkflowEvent => &["run_id"],
        Entity::Segment | Entity::UtilityEvent => &["episode_id"],
        _ => &[],
    };
    for column in same {
        links.push(row.text(column).filter(|text| !text.is_empty()).map(|text| RowLink {
            relation: "list".to_owned(),
            name: format!("{} with the same {}", row.entity.plural(), column.trim_end_matches("_id").replace('_', " ")),
            to: Destination::List(row.entity, Conditions::equal(column, text)),
        }));
    }
    links.into_iter().flatten().collect()
}

/// Returns the entity that a memory link leads to: a case, or a memory of another kind.
pub fn linked_entity(link: &Row) -> Entity {
    if link.text("kind") == Some("case") { Entity::Case } else { Entity::Memory }
}

/// The list of an episode's rows of an entity, if some of them are not in its context.
pub fn others(context: &EpisodeContext, entity: Entity) -> Option<Destination> {
    context.more.get(&entity)?;
    let id = context.episode.id();
    let conditions = match entity {
        Entity::Access => Conditions::has("ids", id),
        Entity::WorkflowEvent => Conditions::equal("run_id", id),
        _ => Conditions::equal("episode_id", id),
    };
    Some(Destination::List(entity, conditions))
}

/// The list of an episode's children, if some of them are not in its context.
pub fn other_children(context: &EpisodeContext) -> Option<Destination> {
    let is_whole = context.children().count() == context.chain.children.len();
    let list = || Destination::List(Entity::Episode, Conditions::equal("parent_id", context.episode.id()));
    (!is_whole).then(list)
}

fn of_episode(context: &EpisodeContext) -> Vec<RowLink> {
    let id = context.episode.id();
    let mut links = Vec::new();
    let position = context.chain.ids.iter().position(|other| other == id).unwrap_or(0);
    for (index, other) in context.chain.ids.iter().enumerate().filter(|(_, other)| *other != id) {
        let relation = if index + 1 == position { "parent" } else { "ancestor" };
        links.extend(context.relative(other).and_then(|row| to_row(relation, row)));
    }
    links.reverse();
    links.extend(context.chain.children.iter().filter_map(|c| to_row("child", context.relative(c)?)));
    links.extend(named_id("consolidated into", Entity::Episode, context.episode.text("consolidated_into")));
    links.extend(context.links.iter().filter_map(|link| {
        let to = named_id("memory", linked_entity(link), link.text("memory_id"))?;
        let memory = context.memories.iter().find(|memory| Some(memory.id()) == link.text("memory_id"));
        Some(RowLink { name: memory.map_or(to.name, row_name), ..to })
    }));
    for (relation, rows) in [
        ("feedback", &context.feedback),
        ("canvas event", &context.canvas),
        ("signal", &context.utility),
        ("segment", &context.segments),
        ("access", &context.accesses),
        ("workflow event", &context.events),
    ] {
        links.extend(rows.iter().filter_map(|row| to_row(relation, row)));
    }
    let list = |name: String, to: Destination| RowLink { relation: "list".to_owned(), name, to };
    let lists = context.more.keys().filter_map(|entity| {
        Some(list(format!("all {} {}", context.total(*entity), entity.plural()), others(context, *entity)?))
    });
    links.extend(lists);
    links.extend(other_children(context).map(|to| list(format!("all {} children", context.chain.children.len()), to)));
    links
}
