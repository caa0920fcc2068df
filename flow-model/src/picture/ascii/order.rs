//! In which order an outline tells of nodes: what only one way leads to is told there, what several
//! ways lead to is told after all of them.

use crate::picture::sketch::{Arrow, Goal, Section, Tone};

/// The shape of a body as an outline.
pub(super) struct Order<'s> {
    /// The ways out of each node.
    pub(super) arrows: Vec<Vec<&'s Arrow>>,
    /// Where the outline starts: the entry, then nodes that nothing leads to.
    pub(super) roots: Vec<usize>,
    /// The nodes that several ways lead to, by the last node all these ways come through. The last
    /// list has those that have no such node.
    pub(super) joins: Vec<Vec<usize>>,
    /// The place of each node in an order where only ways back lead to a smaller place.
    pub(super) place: Vec<usize>,
    /// How many nodes can only be reached through each node, itself included.
    pub(super) weight: Vec<usize>,
    /// Whether several ways lead to each node.
    pub(super) is_join: Vec<bool>,
}

impl<'s> Order<'s> {
    pub(super) fn new(section: &'s Section) -> Self {
        let count = section.body.nodes.len();
        let arrows = section.arrows_by_node();
        let entry = match section.entry {
            Some(Goal::Node(entry)) => Some(entry),
            Some(Goal::End) | None => None,
        };
        let (roots, sorted) = walk(&arrows, entry);
        let mut place = vec![0; count];
        for (at, &node) in sorted.iter().enumerate() {
            place[node] = at;
        }

        // One more node stands for what comes before all roots.
        let origin = count;
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
        for &root in &roots {
            before[root].push(origin);
        }
        for (node, list) in arrows.iter().enumerate() {
            for arrow in list {
                if let Goal::Node(to) = arrow.to
                    && place[node] < place[to]
                {
                    before[to].push(node);
                }
            }
        }
        let is_join: Vec<bool> = before.iter().map(|list| list.len() > 1).collect();

        // Forward ways only, in order: one pass finds the node that all ways come through.
        let depth = |node: usize| if node == origin { 0 } else { place[node] + 1 };
        let mut gate = vec![origin; count + 1];
        for &node in &sorted {
            let common = before[node].iter().copied().reduce(|mut a, mut b| {
                while a != b {
                    if depth(a) > depth(b) {
                        a = gate[a];
                    } else {
                        b = gate[b];
                    }
                }
                a
            });
            gate[node] = common.unwrap_or(origin);
        }
        let mut weight = vec![1; count + 1];
        let mut joins = vec![Vec::new(); count + 1];
        for &node in sorted.iter().rev() {
            weight[gate[node]] += weight[node];
        }
        for &node in &sorted {
            if is_join[node] {
                joins[gate[node]].push(node);
            }
        }
        Order {
            arrows,
            roots,
            joins,
            place,
            weight,
            is_join,
        }
    }
}

/// The roots, and all nodes in reverse of the order in which a depth-first walk leaves them.
fn walk(arrows: &[Vec<&Arrow>], entry: Option<usize>) -> (Vec<usize>, Vec<usize>) {
    let count = arrows.len();
    let mut led_to = vec![false; count];
    for (node, list) in arrows.iter().enumerate() {
        for arrow in list {
            if let Goal::Node(to) = arrow.to
                && to != node
            {
                led_to[to] = true;
            }
        }
    }
    let mut candidates: Vec<usize> = (0..count).collect();
    candidates.sort_by_key(|&node| (Some(node) != entry, led_to[node]));

    // The last way out is walked first, so that the first one ends up right after its node.
    let next: Vec<Vec<usize>> = arrows
        .iter()
        .map(|list| {
            let mut list: Vec<&Arrow> = list.clone();
            list.sort_by_key(|arrow| std::cmp::Reverse(arrow.tone == Tone::Trouble));
            let nodes = list.iter().filter_map(|arrow| match arrow.to {
                Goal::Node(to) => Some(to),
                Goal::End => None,
            });
            let mut nodes: Vec<usize> = nodes.collect();
            let trouble = list
                .iter()
                .filter(|arrow| arrow.tone == Tone::Trouble)
                .count();
            let trouble = trouble.min(nodes.len());
            nodes[trouble..].reverse();
            nodes
        })
        .collect();

    let mut seen = vec![false; count];
    let mut left = Vec::with_capacity(count);
    let mut roots = Vec::new();
    for root in candidates {
        if seen[root] {
            continue;
        }
        roots.push(root);
        seen[root] = true;
        let mut path = vec![(root, 0)];
        while let Some((node, at)) = path.last_mut() {
            match next[*node].get(*at) {
                Some(&to) => {
                    *at += 1;
                    if !seen[to] {
                        seen[to] = true;
                        path.push((to, 0));
                    }
                }
                None => {
                    left.push(*node);
                    path.pop();
                }
            }
        }
    }
    left.reverse();
    (roots, left)
}
