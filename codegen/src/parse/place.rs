//! Places in the source, and messages at them.

use super::Diagnostic;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote_spanned};

/// The first and the last token of something. (Joining spans needs a nightly compiler.)
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its first token.
    pub start: Span,
    /// Its last token.
    pub end: Span,
}

impl Place {
    /// Where `tokens` are.
    pub fn of(tokens: &impl ToTokens) -> Place {
        let mut spans = tokens.to_token_stream().into_iter().map(|t| t.span());
        let start = spans.next().unwrap_or_else(Span::call_site);
        Place { start, end: spans.last().unwrap_or(start) }
    }
}

/// A message and where it belongs.
#[derive(Clone, Debug)]
pub struct Reported {
    /// Where.
    pub place: Place,
    /// What.
    pub diagnostic: Diagnostic,
}

impl Diagnostic {
    /// This message, at `place`.
    pub fn at(self, place: Place) -> Reported {
        Reported { place, diagnostic: self }
    }
}

impl Reported {
    /// `::core::compile_error!("…")`, which the compiler shows under the whole of the place.
    pub fn to_compile_error(&self) -> TokenStream {
        // The compiler takes an error's span from the first to the last token of the invocation.
        let Place { start, end } = self.place;
        let message = self.diagnostic.to_string();
        let path = quote_spanned!(start => ::core::compile_error!);
        let mut arguments =
            proc_macro2::Group::new(proc_macro2::Delimiter::Brace, quote_spanned!(end => #message));
        arguments.set_span(end);
        quote_spanned!(start => #path #arguments)
    }
}
