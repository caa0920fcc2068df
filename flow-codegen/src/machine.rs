//! The states of a body: an enum, its transitions, and a type per state.

use flow_model::expression::rebrace;
use flow_model::graph::{Body, Edge, Guard, Literal as Plain, Node, Outcome, Target, Template};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{ToTokens, format_ident, quote};

use crate::doc;
use crate::names::{Clash, Names, upper};

/// The items for a body; nothing for one without nodes. `subject` is what the states belong to, in
/// words.
pub(crate) fn machine(
    body: &Body,
    subject: &str,
    root: &TokenStream,
    clashes: &mut Vec<Clash>,
) -> TokenStream {
    // A draft may lack its entry; any state will do then.
    let entry = match body.entry {
        Target::Node(entry) => entry,
        Target::Complete => 0,
    };
    let mut names = Names::new("state", &[]);
    let variants: Vec<Ident> = body
        .nodes
        .iter()
        .map(|node| names.claim(&node.id, upper(&node.id), Some(node.line), clashes))
        .collect();
    let Some(initial) = variants.get(usize::from(entry)) else {
        return TokenStream::new();
    };
    let states = States {
        nodes: &body.nodes,
        variants: &variants,
    };
    let declaration = states.declaration(subject);
    let methods = states.methods(initial, subject);
    let traits = traits();
    let at = states.at(subject, root);
    quote!(#declaration #methods #traits #at)
}

struct States<'a> {
    nodes: &'a [Node],
    variants: &'a [Ident],
}

impl States<'_> {
    fn declaration(&self, subject: &str) -> TokenStream {
        let said = doc::doc(&format!("A state of {subject}."));
        let docs = self.nodes.iter().map(doc::state);
        let variants = self.variants;
        quote! {
            #said
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum State { #(#docs #variants,)* }
        }
    }

    fn methods(&self, initial: &Ident, subject: &str) -> TokenStream {
        let variants = self.variants;
        let ids = self.nodes.iter().map(|node| &*node.id);
        let starts = doc::doc(&format!("Where {subject} starts."));
        let last: Vec<&Ident> = self
            .pairs()
            .filter(|(node, _)| node.edges.iter().any(|edge| edge.to == Target::Complete))
            .map(|(_, variant)| variant)
            .collect();
        let is_final = match last.is_empty() {
            true => quote!(false),
            false => quote!(::core::matches!(self, #(Self::#last)|*)),
        };
        let next = self.next();
        let completes = self.completes();
        quote! {
            impl State {
                #starts
                pub const INITIAL: State = State::#initial;

                /// Every state, in the order of the definition.
                pub const ALL: &'static [State] = {
                    use self::State::*;
                    &[#(#variants),*]
                };

                const NAMES: &'static [&'static str] = &[#(#ids),*];

                /// Its name in the definition.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    Self::NAMES[self as usize]
                }

                /// The state of this name.
                #[must_use]
                pub fn from_name(name: &str) -> Option<State> {
                    find(Self::ALL, Self::NAMES, name)
                }

                /// Whether the end can be reached from here without another state.
                #[must_use]
                pub const fn is_final(self) -> bool {
                    #is_final
                }

                /// The state that follows; `None` where the outcome ends everything, well or not.
                #[must_use]
                pub const fn next(self, outcome: Outcome) -> Option<State> {
                    #next
                }

                /// Whether the outcome is the end, reached as meant.
                #[must_use]
                pub const fn completes(self, outcome: Outcome) -> bool {
                    #completes
                }
            }
        }
    }

    fn next(&self) -> TokenStream {
        let mut arms = TokenStream::new();
        let (mut states, mut plain) = (false, false);
        for (node, variant) in self.pairs() {
            for (to, outcomes) in by_target(node) {
                if let Some(to) = self.state(to) {
                    states |= !is_outcome(variant) || !is_outcome(to);
                    plain |= outcomes.iter().any(|outcome| !self.hides(*outcome));
                    let outcomes = outcomes.into_iter().map(|outcome| self.pattern(outcome));
                    let (from, to) = (self.short(variant), self.short(to));
                    arms.extend(quote!((#from, #(#outcomes)|*) => #to,));
                }
            }
        }
        if arms.is_empty() {
            return quote!(let _ = outcome; None);
        }
        let (some, none) = (self.prelude("Some"), self.prelude("None"));
        // What is imported and not used is a warning in somebody's build.
        let imports = match (plain, states) {
            (true, true) => quote!(
                use self::{Outcome::*, State::*};
            ),
            (true, false) => quote!(
                use self::Outcome::*;
            ),
            (false, true) => quote!(
                use self::State::*;
            ),
            (false, false) => TokenStream::new(),
        };
        quote! {
            #imports
            #some(match (self, outcome) {
                #arms
                _ => return #none,
            })
        }
    }

    fn completes(&self) -> TokenStream {
        let mut ends = Vec::new();
        for (node, variant) in self.pairs() {
            for (to, outcomes) in by_target(node) {
                if to == Target::Complete {
                    let outcomes = outcomes.into_iter().map(named);
                    ends.push(quote!((Self::#variant, #(Outcome::#outcomes)|*)));
                }
            }
        }
        if ends.is_empty() {
            return quote!(let _ = outcome; false);
        }
        quote!(::core::matches!((self, outcome), #(#ends)|*))
    }

    /// A type per state with a method per outcome that leads on.
    fn at(&self, subject: &str, root: &TokenStream) -> TokenStream {
        let about = doc::doc(&format!(
            "The states of {subject} as types: a step that the definition does not allow does not compile.\n\n\
             A state has a method for each outcome it can have. It returns the state that follows, \
             or nothing where the outcome is the end."
        ));
        let types = self.pairs().map(|(node, variant)| {
            let methods = legal(node).map(|(outcome, to)| {
                let (name, said) = method(node, outcome);
                match self.state(to) {
                    Some(to) => quote!(#said #name: #to,),
                    None => quote!(#said #name: (),),
                }
            });
            quote!(#variant { #(#methods)* })
        });
        quote! {
            #about
            #[allow(missing_docs, reason = "named after the states and outcomes they stand for")]
            pub mod at {
                use #root::__private::states;
                states! { #(#types)* }
            }
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&Node, &Ident)> {
        self.nodes.iter().zip(self.variants)
    }

    fn state(&self, target: Target) -> Option<&Ident> {
        match target {
            Target::Node(index) => self.variants.get(usize::from(index)),
            Target::Complete => None,
        }
    }

    /// A variant in the scope of both enums.
    fn short(&self, variant: &Ident) -> TokenStream {
        match is_outcome(variant) {
            true => quote!(Self::#variant),
            false => variant.to_token_stream(),
        }
    }

    /// `Some` or `None` in the scope of both enums.
    fn prelude(&self, name: &str) -> TokenStream {
        let ident = format_ident!("{name}");
        match self.variants.contains(&ident) {
            true => quote!(::core::option::Option::#ident),
            false => quote!(#ident),
        }
    }

    /// An outcome in the scope of both enums.
    fn pattern(&self, outcome: Outcome) -> TokenStream {
        let named = named(outcome);
        match self.hides(outcome) {
            true => quote!(self::Outcome::#named),
            false => named,
        }
    }

    /// Whether a state has the name of an outcome.
    fn hides(&self, outcome: Outcome) -> bool {
        self.variants
            .contains(&format_ident!("{}", word(outcome).0))
    }
}

/// An outcome as a variant of its enum.
fn named(outcome: Outcome) -> TokenStream {
    let (name, index) = word(outcome);
    let name = format_ident!("{name}");
    let index = index.map(|index| {
        let index = Literal::u16_unsuffixed(index);
        quote!((#index))
    });
    quote!(#name #index)
}

/// The outcomes of a node by where they lead, in the order of the outcomes.
fn by_target(node: &Node) -> Vec<(Target, Vec<Outcome>)> {
    let chosen = (0u16..)
        .zip(node.edges.iter())
        .filter(|(_, edge)| edge.guard.is_chosen())
        .map(|(index, _)| Outcome::Edge(index));
    let mut groups: Vec<(Target, Vec<Outcome>)> = Vec::new();
    for outcome in Outcome::PLAIN.into_iter().chain(chosen) {
        let Some(to) = node.next(outcome) else {
            continue;
        };
        match groups.iter_mut().find(|(target, _)| *target == to) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => groups.push((to, vec![outcome])),
        }
    }
    groups
}

/// The outcomes that a node can have and that lead somewhere.
fn legal(node: &Node) -> impl Iterator<Item = (Outcome, Target)> {
    let skip = node.when.as_ref().map(|_| Outcome::Skip);
    let chosen = (0u16..)
        .zip(node.edges.iter())
        .filter(|(_, edge)| edge.guard.is_chosen())
        .map(|(index, _)| Outcome::Edge(index));
    let plain = node.kind.outcomes().iter().copied();
    plain
        .chain(skip)
        .chain(chosen)
        .filter_map(|outcome| Some((outcome, node.next(outcome)?)))
}

/// The method of an outcome, with a comment where its name does not say everything.
fn method(node: &Node, outcome: Outcome) -> (Ident, Option<TokenStream>) {
    let name = match outcome {
        Outcome::Success => "success",
        Outcome::Failure => "failure",
        Outcome::Timeout => "timeout",
        Outcome::Skip => "skip",
        Outcome::Then => "then",
        Outcome::Else => "otherwise",
        Outcome::Body => "body",
        Outcome::Done => "done",
        Outcome::Edge(index) => {
            let said = node.edges.get(usize::from(index)).map(condition);
            return (format_ident!("edge_{index}"), said);
        }
    };
    (format_ident!("{name}"), None)
}

fn condition(edge: &Edge) -> TokenStream {
    let said = match &edge.guard {
        Guard::Judged(description) => doc::plain(description),
        guard => {
            let written = guard_text(guard);
            format!("When {written}.")
        }
    };
    doc::doc(&said)
}

fn guard_text(guard: &Guard) -> String {
    use flow_model::graph::Condition as C;
    fn one(condition: &C) -> String {
        let all = |inner: &[C], word: &str| {
            let each: Vec<String> = inner.iter().map(one).collect();
            each.join(word)
        };
        match condition {
            C::Always => "anything happened".to_owned(),
            C::Success(true) => "it succeeded".to_owned(),
            C::Success(false) => "it did not succeed".to_owned(),
            C::TimedOut(true) => "it timed out".to_owned(),
            C::TimedOut(false) => "it did not time out".to_owned(),
            C::PatternMatch(pattern) => format!("`{}` is found", written(pattern)),
            C::PatternNotMatch(pattern) => format!("`{}` is not found", written(pattern)),
            C::FieldEquals(field, _) => format!("`{field}` is as given"),
            C::FieldContains(field, _) => format!("`{field}` has the text"),
            C::Expression(expression) => format!("`{}`", expression.source),
            C::All(inner) => all(inner, " and "),
            C::Any(inner) => all(inner, " or "),
            C::None(inner) => format!("not ({})", all(inner, " or ")),
        }
    }
    match guard {
        Guard::When(condition) => one(condition),
        _ => String::new(),
    }
}

/// A regular expression as its author wrote it.
fn written(pattern: &Template) -> String {
    match pattern {
        Template::Literal(Plain::Str(text)) => text.to_string(),
        Template::Pattern(expression) => rebrace(&expression.source).into_owned(),
        Template::Literal(_)
        | Template::Expression(_)
        | Template::Text(_)
        | Template::Command(_)
        | Template::List(_)
        | Template::Map(_) => String::new(),
    }
}

fn word(outcome: Outcome) -> (&'static str, Option<u16>) {
    match outcome {
        Outcome::Success => ("Success", None),
        Outcome::Failure => ("Failure", None),
        Outcome::Timeout => ("Timeout", None),
        Outcome::Skip => ("Skip", None),
        Outcome::Then => ("Then", None),
        Outcome::Else => ("Else", None),
        Outcome::Body => ("Body", None),
        Outcome::Done => ("Done", None),
        Outcome::Edge(index) => ("Edge", Some(index)),
    }
}

/// Whether a state has the name of an outcome.
fn is_outcome(variant: &Ident) -> bool {
    let words = Outcome::PLAIN.map(|outcome| word(outcome).0);
    let variant = variant.to_string();
    words.contains(&variant.as_str()) || variant == "Edge"
}

fn traits() -> TokenStream {
    quote! {
        impl fmt::Display for State {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for State {
            type Err = UnknownState;

            fn from_str(name: &str) -> Result<State, UnknownState> {
                parse(State::ALL, State::NAMES, name)
            }
        }

        impl Serialize for State {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for State {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<State, D::Error> {
                deserialize_name(from)
            }
        }
    }
}
