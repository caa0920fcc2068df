//! Which arrows lead back, and the layer of every box.

use super::{Diagram, Head, Rank};
use crate::picture::sketch::Tone;

/// The links that close a cycle, found depth first from the first items, ordinary ways before
/// failures.
pub(super) fn back_links(diagram: &Diagram) -> Vec<bool> {
    let mut back = vec![false; diagram.links.len()];
    walk(diagram, |link| back[link] = true);
    back
}

/// The layer of every item: below everything that leads to it by a forward link.
pub(super) fn ranks(diagram: &Diagram, back: &[bool]) -> Vec<usize> {
    let count = diagram.items.len();
    let forward = |link: usize| match diagram.links[link].to {
        Head::Item(to) if !back[link] => Some(to),
        Head::Item(_) | Head::Side => None,
    };
    let outs = outgoing(diagram);
    let order: Vec<usize> = walk(diagram, |_| {}).into_iter().rev().collect();

    let first = diagram.items.iter().any(|item| item.rank == Rank::First);
    let base = usize::from(first);
    let mut ranks: Vec<usize> = diagram
        .items
        .iter()
        .map(|item| if item.rank == Rank::First { 0 } else { base })
        .collect();
    let mut reached: Vec<bool> = diagram
        .items
        .iter()
        .map(|item| item.rank == Rank::First)
        .collect();
    for &item in &order {
        for to in outs[item].iter().filter_map(|&link| forward(link)) {
            ranks[to] = ranks[to].max(ranks[item] + 1);
            reached[to] |= reached[item];
        }
    }

    let lowest = (0..count)
        .filter(|&item| diagram.items[item].rank != Rank::Last)
        .map(|item| ranks[item] + 1)
        .max()
        .unwrap_or(0);
    for (item, rank) in diagram.items.iter().zip(&mut ranks) {
        if item.rank == Rank::Last {
            *rank = lowest;
        }
    }

    // What nothing leads to stands close to what it leads to.
    for &item in order.iter().rev() {
        if reached[item] || diagram.items[item].rank != Rank::Free {
            continue;
        }
        let next = outs[item].iter().filter_map(|&link| forward(link));
        if let Some(next) = next.map(|to| ranks[to]).min() {
            ranks[item] = ranks[item].max(next.saturating_sub(1));
        }
    }
    ranks
}

fn outgoing(diagram: &Diagram) -> Vec<Vec<usize>> {
    let mut outs: Vec<Vec<usize>> = vec![Vec::new(); diagram.items.len()];
    for (index, link) in diagram.links.iter().enumerate() {
        outs[link.from].push(index);
    }
    for list in &mut outs {
        list.sort_by_key(|&link| diagram.links[link].tone == Tone::Trouble);
    }
    outs
}

/// Visits every item depth first, tells of every link that closes a cycle, and returns the items in
/// the order they were left.
fn walk(diagram: &Diagram, mut closes: impl FnMut(usize)) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Left,
    }
    let outs = outgoing(diagram);
    let mut marks = vec![Mark::New; diagram.items.len()];
    let mut left = Vec::with_capacity(diagram.items.len());
    let mut roots: Vec<usize> = (0..diagram.items.len()).collect();
    roots.sort_by_key(|&item| diagram.items[item].rank != Rank::First);
    for root in roots {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        let mut path = vec![(root, 0)];
        while let Some((item, next)) = path.last_mut() {
            let item = *item;
            let Some(&link) = outs[item].get(*next) else {
                marks[item] = Mark::Left;
                left.push(item);
                path.pop();
                continue;
            };
            *next += 1;
            if let Head::Item(to) = diagram.links[link].to {
                match marks[to] {
                    Mark::New => {
                        marks[to] = Mark::Open;
                        path.push((to, 0));
                    }
                    Mark::Open => closes(link),
                    Mark::Left => {}
                }
            }
        }
    }
    left
}
