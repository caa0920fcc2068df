//! Generated code as text.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// A macro around items, and the module that stands for it while they are formatted.
const ITEMS: (&str, &str) = ("with_runtime", "__with_runtime");

/// Formats generated code as `rustfmt` would, with doc comments.
///
/// Tokens that are not items of a file are written as they are.
#[must_use]
pub fn format(tokens: &TokenStream) -> String {
    match syn::parse2(readable(tokens.clone())) {
        Ok(file) => prettyplease::unparse(&file)
            .replace(&format!("mod {} {{", ITEMS.1), &format!("{}! {{", ITEMS.0)),
        Err(_) => tokens.to_string(),
    }
}

/// A doc attribute of several lines becomes one per line, which are written as `///`; a macro around
/// items becomes a module, whose items are formatted.
fn readable(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == ITEMS.0 => {
                let module = format_ident!("{}", ITEMS.1);
                out.extend(quote!(mod #module));
                // The `!`.
                tokens.next();
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
