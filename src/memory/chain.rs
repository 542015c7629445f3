//! Chains: rows linked child to parent, shown root first. They may branch, end at a missing row, or form a cycle.

use std::collections::{HashMap, HashSet};

use super::packed::column::BitList;

/// The path from a row up to its root, and the row's children. Serialises to the shape of the `chain` command.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Chain {
    /// Ids from the root to the requested row, each once.
    #[serde(rename = "chain")]
    pub ids: Vec<String>,
    /// Rows whose parent is the requested one, except itself.
    pub children: Vec<String>,
    /// Whether the path came back to a row it had passed; the first id is then where it would have continued.
    pub cycle: bool,
    /// The parent of the first row, if it does not exist.
    pub missing_parent: Option<String>,
}

/// Walks up to the root, one look-up at a time, wherever the rows are stored.
///
/// Until [`ChainWalk::wanted`] is `None`, look that row up and pass its parent to [`ChainWalk::found`], or call
/// [`ChainWalk::not_found`]. Each row is requested at most once, so the walk ends in any graph.
#[derive(Debug, Clone)]
pub struct ChainWalk {
    upwards: Vec<String>,
    seen: HashSet<String>,
    wanted: Option<String>,
    cycle: bool,
    missing: Option<String>,
}

impl ChainWalk {
    /// A walk that starts at a row.
    pub fn from(id: &str) -> Self {
        ChainWalk {
            upwards: Vec::new(),
            seen: HashSet::new(),
            wanted: Some(id.to_owned()),
            cycle: false,
            missing: None,
        }
    }

    /// The row to look up next; `None` at the end of the walk.
    pub fn wanted(&self) -> Option<&str> {
        self.wanted.as_deref()
    }

    /// Reports that the wanted row exists and has this parent; an empty id means none.
    pub fn found(&mut self, parent: Option<&str>) {
        let Some(id) = self.wanted.take() else { return };
        self.seen.insert(id.clone());
        self.upwards.push(id);
        match parent.filter(|parent| !parent.is_empty()) {
            Some(parent) if self.seen.contains(parent) => self.cycle = true,
            parent => self.wanted = parent.map(str::to_owned),
        }
    }

    /// Reports that the wanted row does not exist.
    pub fn not_found(&mut self) {
        self.missing = self.wanted.take();
    }

    /// The chain, given the children of the requested row; `None` if that row does not exist.
    pub fn finish(self, children: Vec<String>) -> Option<Chain> {
        let mut ids = self.upwards;
        let asked = ids.first()?.clone();
        ids.reverse();
        let children = children.into_iter().filter(|child| *child != asked).collect();
        Some(Chain { ids, children, cycle: self.cycle, missing_parent: self.missing })
    }
}

/// Rows with their parents, all in memory.
#[derive(Debug, Clone, Default)]
pub struct ParentLinks {
    rows: Vec<(String, Option<String>)>,
    positions: HashMap<String, usize>,
    children: HashMap<String, Vec<usize>>,
}

impl ParentLinks {
    /// Takes (id, parent) pairs; children keep this order. If an id is repeated, its first pair counts.
    pub fn new(pairs: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        let mut links = ParentLinks::default();
        for (id, parent) in pairs {
            let position = links.rows.len();
            if links.positions.contains_key(&id) {
                continue;
            }
            if let Some(parent) = parent.clone() {
                links.children.entry(parent).or_default().push(position);
            }
            links.positions.insert(id.clone(), position);
            links.rows.push((id, parent));
        }
        links
    }

    /// Ids of the children of a row.
    pub fn children(&self, id: &str) -> Vec<String> {
        self.child_positions(id).iter().filter_map(|p| self.rows.get(*p)).map(|(id, _)| id.clone()).collect()
    }

    /// The chain of a row; `None` when there is no such row.
    pub fn chain(&self, id: &str) -> Option<Chain> {
        let mut walk = ChainWalk::from(id);
        while let Some(wanted) = walk.wanted() {
            match self.row(wanted) {
                Some((_, parent)) => walk.found(parent.as_deref()),
                None => walk.not_found(),
            }
        }
        walk.finish(self.children(id))
    }

    /// The whole tree that a row belongs to, from the root of its chain; `None` when there is no such row.
    pub fn tree(&self, id: &str) -> Option<Tree> {
        let root = self.chain(id)?.ids.first()?.clone();
        let mut nodes: Vec<Node> = Vec::new();
        let mut drawn = HashSet::from([*self.positions.get(&root)?]);
        let mut waiting = vec![Node { id: root, depth: 0, parent: None, is_last: true, closes_cycle: false }];
        while let Some(mut node) = waiting.pop() {
            let (depth, parent) = (node.depth + 1, Some(nodes.len()));
            let all = self.child_positions(&node.id);
            let fresh: Vec<usize> = all.iter().copied().filter(|position| drawn.insert(*position)).collect();
            node.closes_cycle = fresh.len() < all.len();
            nodes.push(node);
            let last = fresh.last().copied();
            waiting.extend(fresh.iter().rev().filter_map(|position| {
                let id = self.rows.get(*position)?.0.clone();
                Some(Node { id, depth, parent, is_last: Some(*position) == last, closes_cycle: false })
            }));
        }
        Some(Tree { nodes })
    }

    /// Every cycle among the links, as its ids from child to parent; a row that is its own parent is one too.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let id = |position: &usize| self.rows.get(*position).map(|(id, _)| id.clone());
        let circles = circles(self.rows.len(), |position| self.parent_position(position));
        circles.iter().map(|circle| circle.iter().filter_map(id).collect()).collect()
    }

    fn row(&self, id: &str) -> Option<&(String, Option<String>)> {
        self.rows.get(*self.positions.get(id)?)
    }

    fn parent_position(&self, position: usize) -> Option<usize> {
        self.positions.get(self.rows.get(position)?.1.as_deref()?).copied()
    }

    fn child_positions(&self, id: &str) -> &[usize] {
        self.children.get(id).map_or(&[], Vec::as_slice)
    }
}

/// Every cycle among this many rows, from child to parent; a row that is its own parent is one too. `parent` returns
/// the position of a row's parent.
pub fn circles(rows: usize, parent: impl Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
    let (mut walked, mut found) = (BitList::new(rows), Vec::new());
    let mut way = Vec::new();
    for start in 0..rows {
        way.clear();
        let mut next = Some(start);
        while let Some(position) = next.filter(|position| *position < rows && walked.set(*position)) {
            way.push(position);
            next = parent(position);
        }
        // If the path meets itself, a cycle begins there; otherwise it met an earlier path.
        if let Some(met) = next.and_then(|met| way.iter().position(|position| *position == met)) {
            found.push(way.split_off(met));
        }
    }
    found
}

/// A tree to draw, each node after its parent and before its next sibling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The nodes, from top to bottom.
    pub nodes: Vec<Node>,
}

/// A node of a [`Tree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Id of the row.
    pub id: String,
    /// Steps from the root, whose depth is 0.
    pub depth: usize,
    /// Position of its parent among the nodes.
    pub parent: Option<usize>,
    /// Whether it is the last of its siblings.
    pub is_last: bool,
    /// Whether one of its children is drawn already further up, which closes a cycle.
    pub closes_cycle: bool,
}

impl Tree {
    /// For each level left of a node, from the outermost: whether a line passes there to a later sibling. The last one
    /// belongs to the node itself; a root has none. Takes time in proportion to the depth, so call it for visible rows
    /// only.
    pub fn rails(&self, position: usize) -> Vec<bool> {
        let above = |node: &&Node| node.parent.and_then(|p| self.nodes.get(p));
        let own = self.nodes.get(position);
        let lineage = std::iter::successors(own, above).filter(|node| node.parent.is_some());
        let mut rails: Vec<bool> = lineage.map(|node| !node.is_last).collect();
        rails.reverse();
        rails
    }
}

/// Facts about a row that a chain needs to judge a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainMember<'a> {
    /// Id of the row.
    pub id: &'a str,
    /// Agent that remembers the row.
    pub agent_id: Option<&'a str>,
    /// Canonical time of its start.
    pub started_at: Option<&'a str>,
}

/// A fault in the link from a child to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkFault {
    /// The row is its own parent.
    SelfParent,
    /// The parent does not exist.
    MissingParent,
    /// The parent started after the child.
    YoungerParent,
    /// The parent is another agent's.
    ForeignParent,
}

/// The faults of one link; `parent` is `None` if the row it names does not exist. Unknown facts are not faults.
pub fn faults(child: ChainMember, parent: Option<ChainMember>) -> Vec<LinkFault> {
    let Some(parent) = parent else { return vec![LinkFault::MissingParent] };
    if child.id == parent.id {
        return vec![LinkFault::SelfParent];
    }
    let younger = parent.started_at.zip(child.started_at).is_some_and(|(parent, child)| parent > child);
    let foreign = parent.agent_id.zip(child.agent_id).is_some_and(|(parent, child)| parent != child);
    [(younger, LinkFault::YoungerParent), (foreign, LinkFault::ForeignParent)]
        .into_iter()
        .filter_map(|(found, fault)| found.then_some(fault))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn links(pairs: &[(&str, &str)]) -> ParentLinks {
        let parent = |p: &str| (!p.is_empty()).then(|| p.to_owned());
        ParentLinks::new(pairs.iter().map(|(id, p)| ((*id).to_owned(), parent(p))))
    }

    fn chain(pairs: &[(&str, &str)], id: &str) -> serde_json::Value {
        json!(links(pairs).chain(id).unwrap())
    }

    #[test]
    fn a_chain_is_shown_root_first_with_its_branches() {
        let pairs = [("root", ""), ("a", "root"), ("b", "root"), ("leaf", "a"), ("other", "")];
        assert_eq!(
            chain(&pairs, "a"),
            json!({"chain": ["root", "a"], "children": ["leaf"], "cycle": false, "missing_parent": null})
        );
        assert_eq!(
            chain(&pairs, "root"),
            json!({"chain": ["root"], "children": ["a", "b"], "cycle": false, "missing_parent": null})
        );
        assert_eq!(links(&pairs).chain("nobody"), None);
    }

    #[test]
    fn a_cycle_is_an_answer() {
        assert_eq!(
            chain(&[("a", "b"), ("b", "c"), ("c", "b")], "a"),
            json!({"chain": ["c", "b", "a"], "children": [], "cycle": true, "missing_parent": null})
        );
        assert_eq!(
            chain(&[("a", "a"), ("b", "a")], "a"),
            json!({"chain": ["a"], "children": ["b"], "cycle": true, "missing_parent": null})
        );
        assert_eq!(
            chain(&[("a", "b"), ("b", "a")], "a"),
            json!({"chain": ["b", "a"], "children": ["b"], "cycle": true, "missing_parent": null})
        );
    }

    #[test]
    fn a_missing_parent_is_named() {
        assert_eq!(
            chain(&[("a", "gone"), ("b", "a")], "b"),
            json!({"chain": ["a", "b"], "children": [], "cycle": false, "missing_parent": "gone"})
        );
    }

    #[test]
    fn cycles_are_found_wherever_they_are() {
        let found =
            links(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("s", "s"), ("r", ""), ("q", "gone")]).cycles();
        assert_eq!(found, [vec!["a", "b", "c"], vec!["s"]]);
    }

    #[test]
    fn a_tree_knows_depths_and_rails() {
        let pairs = [("r", ""), ("a", "r"), ("b", "r"), ("a1", "a"), ("a2", "a"), ("b1", "b")];
        let tree = links(&pairs).tree("b1").unwrap();
        let drawn: Vec<(&str, usize, Vec<bool>)> =
            tree.nodes.iter().enumerate().map(|(i, n)| (n.id.as_str(), n.depth, tree.rails(i))).collect();
        assert_eq!(
            drawn,
            [
                ("r", 0, vec![]),
                ("a", 1, vec![true]),
                ("a1", 2, vec![true, true]),
                ("a2", 2, vec![true, false]),
                ("b", 1, vec![false]),
                ("b1", 2, vec![false, false]),
            ]
        );
        assert_eq!(tree.rails(99), Vec::<bool>::new());
    }

    #[test]
    fn a_tree_of_a_circle_says_where_it_closes() {
        let tree = links(&[("a", "b"), ("b", "a"), ("c", "a")]).tree("c").unwrap();
        let drawn: Vec<(&str, bool)> = tree.nodes.iter().map(|n| (n.id.as_str(), n.closes_cycle)).collect();
        assert_eq!(drawn, [("b", false), ("a", true), ("c", false)]);
        assert!(links(&[("a", "a")]).tree("a").unwrap().nodes[0].closes_cycle);
    }

    #[test]
    fn long_chains_need_no_stack() {
        let count = 100_000;
        let id = |i: usize| format!("n{i}");
        let links = ParentLinks::new((0..count).map(|i| (id(i), (i > 0).then(|| id(i - 1)))));
        let last = id(count - 1);
        assert_eq!(links.chain(&last).unwrap().ids.len(), count);
        let tree = links.tree(&last).unwrap();
        assert_eq!((tree.nodes.len(), tree.nodes[count - 1].depth), (count, count - 1));
        assert_eq!(tree.rails(count - 1).len(), count - 1);
        assert!(links.cycles().is_empty());
    }

    #[test]
    fn faults_of_a_link() {
        let member = |id, agent_id, started_at| ChainMember { id, agent_id, started_at };
        let child = member("c", Some("x"), Some("2026-02-04T10:00:00.000000Z"));
        let later = Some("2026-02-05T10:00:00.000000Z");
        for (parent, expected) in [
            (None, vec![LinkFault::MissingParent]),
            (Some(child), vec![LinkFault::SelfParent]),
            (Some(member("p", Some("x"), child.started_at)), vec![]),
            (Some(member("p", Some("y"), later)), vec![LinkFault::YoungerParent, LinkFault::ForeignParent]),
            (Some(member("p", None, None)), vec![]),
        ] {
            assert_eq!(faults(child, parent), expected, "{parent:?}");
        }
    }

    fn any_links() -> impl Strategy<Value = Vec<(String, Option<String>)>> {
        let row = prop::option::of(0_usize..15);
        prop::collection::vec(row, 1..12).prop_map(|parents| {
            parents.iter().enumerate().map(|(i, p)| (i.to_string(), p.map(|p| p.to_string()))).collect()
        })
    }

    proptest! {
        #[test]
        fn chains_hold_in_any_graph(pairs in any_links()) {
            let parents: HashMap<_, _> = pairs.iter().cloned().collect();
            let links = ParentLinks::new(pairs.clone());
            let on_cycle: HashSet<String> = links.cycles().into_iter().flatten().collect();
            for (id, _) in &pairs {
                let chain = links.chain(id).unwrap();
                prop_assert_eq!(chain.ids.last(), Some(id));
                for pair in chain.ids.windows(2) {
                    prop_assert_eq!(parents[&pair[1]].as_ref(), Some(&pair[0]));
                }
                let top = &parents[&chain.ids[0]];
                prop_assert_eq!(chain.cycle, top.as_ref().is_some_and(|t| chain.ids.contains(t)));
                prop_assert_eq!(chain.cycle, chain.ids.iter().any(|i| on_cycle.contains(i)));
                let lost = top.as_ref().filter(|t| !parents.contains_key(*t));
                prop_assert_eq!(chain.missing_parent.as_ref(), lost);
                let tree = links.tree(id).unwrap();
                let unique: HashSet<&String> = tree.nodes.iter().map(|n| &n.id).collect();
                prop_assert_eq!(unique.len(), tree.nodes.len());
                prop_assert!(chain.ids.iter().all(|i| unique.contains(i)));
                prop_assert_eq!(tree.nodes.iter().any(|n| n.closes_cycle), chain.cycle);
            }
        }
    }
}
