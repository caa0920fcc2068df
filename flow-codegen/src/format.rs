//! Generated code as text.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// Macros whose content is formatted as if they were modules of this name.
const MODULES: [(&str, &str); 2] = [("with_runtime", "__with_runtime"), ("states", "__states")];
/// What stands before the states of [`MODULES`], which are formatted as structs.
const STRUCT: &str = "__state_";

/// Formats generated code as `rustfmt` would, with doc comments.
///
/// Tokens that are not items of a file are written as they are.
#[must_use]
pub fn format(tokens: &TokenStream) -> String {
    match syn::parse2(readable(tokens.clone())) {
        Ok(file) => {
            let mut text = prettyplease::unparse(&file);
            for (name, module) in MODULES {
                text = text.replace(&format!("mod {module} {{"), &format!("{name}! {{"));
            }
            text.replace(&format!("struct {STRUCT}"), "")
        }
        Err(_) => tokens.to_string(),
    }
}

/// A doc attribute of several lines becomes one per line, which are written as `///`; a macro around
/// items becomes a module, whose items are formatted.
fn readable(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) => {
                let called =
                    |next: &TokenTree| matches!(next, TokenTree::Punct(p) if p.as_char() == '!');
                let module = MODULES.iter().find(|(macro_name, _)| name == macro_name);
                let Some((_, module)) = module.filter(|_| tokens.peek().is_some_and(called)) else {
                    out.extend([TokenTree::Ident(name)]);
                    continue;
                };
                tokens.next();
                let module = format_ident!("{module}");
                out.extend(quote!(mod #module));
                if name == "states"
                    && let Some(TokenTree::Group(states)) = tokens.next()
                {
                    let states = readable(structs(states.stream()));
                    out.extend(quote!({ #states }));
                }
            }
            TokenTree::Group(group) => match lines(&group) {
                // The `#` before it is out already.
                Some(lines) => {
                    let mut lines = lines.iter();
                    let first = lines.next();
                    out.extend(quote!([doc = #first] #(#[doc = #lines])*));
                }
                None => {
                    let mut inner = Group::new(group.delimiter(), readable(group.stream()));
                    inner.set_span(group.span());
                    out.extend([TokenTree::Group(inner)]);
                }
            },
            other => out.extend([other]),
        }
    }
    out
}

/// States with their outcomes as structs with fields.
fn structs(states: TokenStream) -> TokenStream {
    states
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(name) => {
                let name = format_ident!("{STRUCT}{name}");
                quote!(struct #name)
            }
            other => other.into(),
        })
        .collect()
}

/// The lines of `[doc = "…"]`, if that is what a group is.
fn lines(group: &Group) -> Option<Vec<String>> {
    let mut tokens = group.stream().into_iter();
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(_)), Some(text), None) =
        (tokens.next(), tokens.next(), tokens.next(), tokens.next())
    else {
        return None;
    };
    if group.delimiter() != Delimiter::Bracket || name != "doc" {
        return None;
    }
    let text: syn::LitStr = syn::parse2(text.into()).ok()?;
    Some(text.value().split('\n').map(str::to_owned).collect())
}
