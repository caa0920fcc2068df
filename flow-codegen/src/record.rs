//! Declared fields as structs.

use flow_model::graph::{Field, Literal, Type};
use proc_macro2::{Ident, Literal as Token, TokenStream};
use quote::{format_ident, quote};

use crate::doc;
use crate::literal::{self, Emit};
use crate::names::{Clash, Names, lower, upper};

/// Collects structs; nested ones come after the one they stand in.
pub(crate) struct Records<'a> {
    names: Names,
    clashes: &'a mut Vec<Clash>,
    items: TokenStream,
}

/// A field of a struct.
struct Member<'f> {
    field: &'f Field,
    name: Ident,
    ty: TokenStream,
    /// The struct its value has, if it is one of ours.
    nested: Option<Ident>,
}

impl Member<'_> {
    fn is_optional(&self) -> bool {
        !self.field.required && self.default().is_none()
    }

    fn default(&self) -> Option<&Literal> {
        self.field.default.as_ref().filter(|d| **d != Literal::Null)
    }
}

impl<'a> Records<'a> {
    pub(crate) fn new(clashes: &'a mut Vec<Clash>) -> Self {
        let reserved = [
            "State", "Outcome", "Tools", "Inputs", "Output", "Workflow", "Run",
        ];
        Records {
            names: Names::new("type", &reserved),
            clashes,
            items: TokenStream::new(),
        }
    }

    pub(crate) fn into_items(self) -> TokenStream {
        self.items
    }

    /// A name for a struct that no other has.
    pub(crate) fn name(&mut self, written: &str, name: String) -> Ident {
        self.names.claim(written, name, None, self.clashes)
    }

    /// An identifier in a scope of its own.
    pub(crate) fn claim(&mut self, scope: &mut Names, written: &str, name: String) -> Ident {
        scope.claim(written, name, None, self.clashes)
    }

    /// Adds a struct for fields.
    pub(crate) fn record(
        &mut self,
        name: &Ident,
        said: &str,
        noun: &'static str,
        fields: &[Field],
    ) {
        let mut scope = Names::new(noun, &[]);
        let mut inner = Vec::new();
        let members: Vec<Member<'_>> = fields
            .iter()
            .map(|field| {
                let ident = scope.claim(&field.name, lower(&field.name), None, self.clashes);
                let nested = is_record(field).then(|| {
                    let nested = self.name(&field.name, format!("{name}{}", upper(&field.name)));
                    inner.push((nested.clone(), field));
                    nested
                });
                let mut member = Member {
                    field,
                    name: ident,
                    ty: self.type_of(field, nested.as_ref()),
                    nested,
                };
                if member.is_optional() && field.ty != Type::Any {
                    let ty = &member.ty;
                    member.ty = quote!(Option<#ty>);
                }
                member
            })
            .collect();
        let item = self.item(name, said, &members);
        let implementation = self.implementation(name, &members);
        let default = default(name, &members);
        let debug = debug(name, &members);
        self.items
            .extend(quote!(#item #debug #default #implementation));
        for (nested, field) in inner {
            let said = format!("The value of `{}`.", field.name);
            self.record(&nested, &said, "property", &field.validation.properties);
        }
    }

    fn item(&self, name: &Ident, said: &str, members: &[Member<'_>]) -> TokenStream {
        let said = doc::doc(said);
        let fields = members.iter().map(|member| {
            let Member {
                field, name, ty, ..
            } = member;
            let otherwise = format!("`{}`.", field.name);
            let said = doc::said_or(field.description.as_deref(), &otherwise);
            quote!(#said pub #name: #ty,)
        });
        let debug = (!hides(members)).then(|| quote!(Debug,));
        let derived = derives_default(members).then(|| quote!(Default,));
        quote! {
            #said
            #[derive(Clone, #debug #derived PartialEq)]
            pub struct #name { #(#fields)* }

            impl #name {
                /// Says everything that the definition does not allow.
                ///
                /// # Errors
                ///
                /// Every fault.
                pub fn validate(&self) -> Result<(), Invalid> {
                    validate(self)
                }
            }
        }
    }

    fn implementation(&self, name: &Ident, members: &[Member<'_>]) -> TokenStream {
        let fields = members
            .iter()
            .map(|member| literal::field(member.field, member.nested.as_ref()));
        let idents: Vec<&Ident> = members.iter().map(|member| &member.name).collect();
        let keys: Vec<&str> = members.iter().map(|member| &*member.field.name).collect();
        let import = (!members.is_empty()).then(|| {
            quote!(
                use self::graph::{*, build::*};
            )
        });
        let mutable = (!members.is_empty()).then(|| quote!(mut));
        let unused = members.is_empty().then(|| quote!(let _ = values;));
        quote! {
            impl Record for #name {
                const FIELDS: &'static [Field] = { #import &[#(#fields),*] };

                fn to_values(&self) -> Values {
                    values([#((#keys, Part::to_value(&self.#idents)),)*])
                }

                fn from_values(#mutable values: Values) -> Result<Self, Invalid> {
                    #unused
                    Ok(#name { #(#idents: read(&mut values, #keys)?,)* })
                }
            }

            impl Serialize for #name {
                fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    serialize(self, to)
                }
            }

            impl<'de> Deserialize<'de> for #name {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    deserialize(from)
                }
            }
        }
    }

    fn type_of(&self, field: &Field, nested: Option<&Ident>) -> TokenStream {
        if let Some(nested) = nested {
            return quote!(#nested);
        }
        if field.ty == Type::Array {
            let item = plain_type(field.validation.item_type.unwrap_or(Type::Any));
            return quote!(Vec<#item>);
        }
        plain_type(field.ty)
    }
}

/// Whether a value has a struct of its own: a map whose keys are all declared.
fn is_record(field: &Field) -> bool {
    field.ty == Type::Object && field.validation.is_closed()
}

fn plain_type(ty: Type) -> TokenStream {
    match ty {
        Type::Any => quote!(Value),
        Type::String => quote!(String),
        Type::Number => quote!(f64),
        Type::Integer => quote!(i64),
        Type::Boolean => quote!(bool),
        Type::Array => quote!(Vec<Value>),
        Type::Object => quote!(Values),
    }
}

/// Whether a value must not be shown.
fn hides(members: &[Member<'_>]) -> bool {
    members.iter().any(|member| member.field.secret)
}

/// `Debug` that does not show secrets.
fn debug(name: &Ident, members: &[Member<'_>]) -> Option<TokenStream> {
    if !hides(members) {
        return None;
    }
    let text = name.to_string();
    let fields = members.iter().map(|member| {
        let (key, ident) = (&*member.field.name, &member.name);
        match member.field.secret {
            true => quote!(.field(#key, &Secret)),
            false => quote!(.field(#key, &self.#ident)),
        }
    });
    Some(quote! {
        impl fmt::Debug for #name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(#text) #(#fields)* .finish()
            }
        }
    })
}

/// Whether every field has the default of its type.
fn derives_default(members: &[Member<'_>]) -> bool {
    members.iter().all(|member| match member.default() {
        Some(Literal::Bool(value)) => !value,
        Some(Literal::Int(value)) => *value == 0,
        Some(Literal::Float(value)) => *value == 0.0,
        Some(Literal::Str(text)) => text.is_empty(),
        Some(Literal::List(items)) => items.is_empty(),
        Some(Literal::Map(entries)) => entries.is_empty() && member.nested.is_none(),
        Some(Literal::Null) | None => member.is_optional(),
    })
}

fn default(name: &Ident, members: &[Member<'_>]) -> Option<TokenStream> {
    if derives_default(members) {
        return None;
    }
    let values = members.iter().map(|member| {
        let ident = &member.name;
        let value = match member.default() {
            Some(literal) => typed(literal, member.field, member.nested.as_ref())?,
            None if member.field.required => return None,
            None => quote!(Default::default()),
        };
        Some(quote!(#ident: #value,))
    });
    let values: Option<Vec<TokenStream>> = values.collect();
    values.map(|values| {
        quote! {
            impl Default for #name {
                fn default() -> Self {
                    #name { #(#values)* }
                }
            }
        }
    })
}

/// A literal as a value of the type that a field has; `None` when it does not fit.
fn typed(literal: &Literal, field: &Field, nested: Option<&Ident>) -> Option<TokenStream> {
    if let Some(nested) = nested {
        let Literal::Map(entries) = literal else {
            return None;
        };
        let fields: Option<Vec<TokenStream>> = field
            .validation
            .properties
            .iter()
            .map(|property| {
                let ident = crate::names::ident(&lower(&property.name));
                let given = entries.iter().find(|(key, _)| *key == property.name);
                let given = given
                    .map(|(_, value)| value)
                    .filter(|v| **v != Literal::Null);
                let default = property.default.as_ref().filter(|d| **d != Literal::Null);
                let inner =
                    is_record(property).then(|| format_ident!("{nested}{}", upper(&property.name)));
                let optional = !property.required && default.is_none() && property.ty != Type::Any;
                let value = match given.or(default) {
                    Some(value) => typed(value, property, inner.as_ref())?,
                    None if property.required => return None,
                    None => return Some(quote!(#ident: Default::default())),
                };
                Some(match optional {
                    true => quote!(#ident: Some(#value)),
                    false => quote!(#ident: #value),
                })
            })
            .collect();
        let fields = fields?;
        return Some(quote!(#nested { #(#fields),* }));
    }
    if let (Type::Array, Literal::List(items)) = (field.ty, literal) {
        let ty = field.validation.item_type.unwrap_or(Type::Any);
        if matches!(ty, Type::Any | Type::Array | Type::Object) {
            return plain(literal, field.ty);
        }
        let items: Option<Vec<TokenStream>> = items.iter().map(|item| plain(item, ty)).collect();
        let items = items?;
        return Some(quote!(::std::vec![#(#items),*]));
    }
    plain(literal, field.ty)
}

fn plain(literal: &Literal, ty: Type) -> Option<TokenStream> {
    let open = || {
        let literal = literal.emit();
        quote!({
            #[allow(unused_imports, reason = "not every value needs all of them")]
            use self::graph::{*, build::*};
            open(const { &#literal })
        })
    };
    Some(match (ty, literal) {
        (Type::String, Literal::Str(text)) => {
            let text: &str = text;
            quote!(#text.to_owned())
        }
        (Type::Integer, Literal::Int(value)) => {
            let value = Token::i64_unsuffixed(*value);
            quote!(#value)
        }
        (Type::Integer, Literal::Float(value)) if value.fract() == 0.0 && value.abs() < 9e15 => {
            #[allow(clippy::cast_possible_truncation, reason = "whole and small enough")]
            let value = Token::i64_unsuffixed(*value as i64);
            quote!(#value)
        }
        (Type::Number, Literal::Int(value)) => {
            #[allow(clippy::cast_precision_loss, reason = "as reading the value would")]
            let value = Token::f64_unsuffixed(*value as f64);
            quote!(#value)
        }
        (Type::Number, Literal::Float(value)) if value.is_finite() => {
            let value = Token::f64_unsuffixed(*value);
            quote!(#value)
        }
        (Type::Boolean, Literal::Bool(value)) => quote!(#value),
        (Type::Any | Type::Array | Type::Object, _) => open(),
        _ => return None,
    })
}
