//! The bundle: one launch's arguments, a field each.

use super::{Names, docs, hidden, levels};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use seamline_codegen::ParamId;
use seamline_codegen::parse::Parsed;
use seamline_codegen::tensor::Access;
use std::collections::HashSet;
use syn::ext::IdentExt;

/// A field of the bundle.
struct Field {
    ident: Ident,
    docs: String,
    kind: Kind,
}

/// How a field is passed on.
#[derive(Clone, Copy)]
enum Kind {
    Input,
    Optional,
    Scalar,
    InPlace,
    Output,
}

impl Kind {
    fn ty(self, krate: &TokenStream) -> TokenStream {
        match self {
            Kind::Input => quote!(#krate::__private::Input<'a>),
            Kind::Optional => quote!(::core::option::Option<#krate::__private::Input<'a>>),
            Kind::Scalar => quote!(f32),
            Kind::InPlace | Kind::Output => quote!(#krate::__private::Output<'a>),
        }
    }

    fn arg(self, krate: &TokenStream, ident: &Ident) -> TokenStream {
        let arg = quote!(#krate::__private::Arg);
        match self {
            Kind::Input => quote!(#arg::Input(self.#ident)),
            Kind::Optional => quote!(self.#ident.map_or(#arg::Absent, #arg::Input)),
            Kind::Scalar => quote!(#arg::Scalar(self.#ident)),
            Kind::InPlace => quote!(#arg::InPlace(self.#ident)),
            Kind::Output => quote!(#arg::Output(self.#ident)),
        }
    }
}

/// Parameters, then outputs that are not in place: the order of `Bundle::collect`. Two of one name were
/// reported, and give one field, so that the compiler has nothing to add.
fn fields(parsed: &Parsed) -> Vec<Field> {
    let in_place = |id| parsed.outputs.iter().any(|o| o.in_place == Some(id));
    let params = parsed.signature.params.iter().enumerate().map(|(i, param)| Field {
        ident: param.ident.clone(),
        docs: docs::param(param, in_place(ParamId(i as u32)), &parsed.options.fixed),
        kind: match param.role {
            _ if in_place(ParamId(i as u32)) => Kind::InPlace,
            _ if param.optional => Kind::Optional,
            Some(role) if role.tensor().access == Access::Value => Kind::Scalar,
            _ => Kind::Input,
        },
    });
    let outputs = parsed.outputs.iter().filter(|o| o.in_place.is_none()).map(|output| Field {
        ident: output.ident.clone(),
        docs: docs::output(output, &parsed.options.fixed),
        kind: Kind::Output,
    });
    let mut seen = HashSet::from(["tokens".to_owned()]);
    params.chain(outputs).filter(|f| seen.insert(f.ident.unraw().to_string())).collect()
}

pub(super) fn bundle(parsed: &Parsed, names: &Names) -> TokenStream {
    let Names { pattern, bundle, krate } = names;
    let vis = &parsed.vis;
    let (levels, hidden) = (levels(parsed), hidden(parsed));
    let fields = fields(parsed);
    let idents = fields.iter().map(|f| &f.ident);
    let docs = fields.iter().map(|f| &f.docs);
    let types = fields.iter().map(|f| f.kind.ty(krate));
    let args = fields.iter().map(|f| f.kind.arg(krate, &f.ident));
    let summary = format!("Every argument of one launch of [`{pattern}`].");
    // Only beside an error is there no memory among the arguments, and so no use of the lifetime.
    let lifetime = match fields.iter().all(|f| matches!(f.kind, Kind::Scalar)) {
        true => quote!(#[doc(hidden)] #vis lifetime: ::core::marker::PhantomData<&'a ()>,),
        false => quote!(),
    };
    let into = Ident::new("into", Span::mixed_site());
    quote! {
        #(#levels)*
        #[doc = #summary]
        #hidden
        #[derive(Debug)]
        #vis struct #bundle<'a> {
            /// T, the number of tokens of this launch.
            #vis tokens: usize,
            #(#[doc = #docs] #vis #idents: #types,)*
            #lifetime
        }

        #(#levels)*
        #[automatically_derived]
        impl<'a> #krate::__private::Bundle<'a> for #bundle<'a> {
            fn tokens(&self) -> usize {
                self.tokens
            }

            fn collect(self, #into: &mut #krate::__private::ArgList<'a>) {
                #(#into.push(#args);)*
            }
        }
    }
}
