//! Finds the patterns of a source file, token by token.
//!
//! Only they are parsed. The rest of the file may be anything with matching brackets, as deep and as large as it likes, and a
//! pattern is found wherever an item may stand: in modules, in fns, in blocks.

use super::Place;
use super::nesting::is_keyword;
use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, Ident, Punct, TokenStream, TokenTree};
use std::iter::Peekable;
use std::rc::Rc;

/// A fn, or whatever it is, under `#[fused_pattern]`.
pub(super) struct Item {
    /// The modules and fns around it, and its name.
    pub path: Rc<str>,
    /// The attribute.
    pub place: Place,
    /// What is between the attribute's parentheses.
    pub attr: TokenStream,
    /// The item, with its other attributes.
    pub tokens: TokenStream,
    /// What it stands in.
    pub inside: Inside,
}

/// What an item stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// A module, a fn or a block.
    Free,
    /// An `impl` or a `trait`.
    Impl,
    /// The arguments of a macro: what becomes of them is not known here.
    Macro,
}

/// Every pattern in `tokens`, in order.
pub(super) fn patterns(tokens: TokenStream) -> Vec<Item> {
    let mut found = Vec::new();
    let mut open = vec![Scope::new(tokens, "".into(), Inside::Free)];
    // Without recursion: what is around patterns may be deeper than the stack.
    while let Some(scope) = open.last_mut() {
        match scope.advance(&mut found) {
            Some(inner) => open.push(inner),
            None => drop(open.pop()),
        }
    }
    found
}

/// The inside of a group, as far as it has been looked at.
struct Scope {
    tokens: Peekable<IntoIter>,
    path: Rc<str>,
    inside: Inside,
    head: Head,
}

/// What the item or statement under way has begun with.
#[derive(Default)]
struct Head {
    keyword: Option<Keyword>,
    name: Option<Ident>,
    /// More than a visibility and the like has come.
    begun: bool,
    /// The word that the last token is.
    word: Option<Ident>,
    /// The name of a macro, whose arguments come.
    called: Option<Ident>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    /// `mod` or `fn`, whose names are part of paths.
    Named,
    /// `impl` or `trait`.
    Impl,
}

impl Scope {
    fn new(tokens: TokenStream, path: Rc<str>, inside: Inside) -> Scope {
        Scope { tokens: tokens.into_iter().peekable(), path, inside, head: Head::default() }
    }

    /// Goes on to the next group, which is to be looked at first; `None` at the end.
    fn advance(&mut self, found: &mut Vec<Item>) -> Option<Scope> {
        while let Some(token) = self.tokens.next() {
            match token {
                TokenTree::Punct(hash) if hash.as_char() == '#' => found.extend(self.attributes(hash)),
                TokenTree::Punct(mark) => self.head.mark(mark.as_char()),
                TokenTree::Ident(word) => self.head.word(word),
                TokenTree::Literal(_) => (self.head.begun, self.head.word) = (true, None),
                TokenTree::Group(group) => return Some(self.enter(&group)),
            }
        }
        None
    }

    fn enter(&mut self, group: &Group) -> Scope {
        let is_call = self.head.called.take().is_some();
        self.head.word = None;
        let head = match group.delimiter() {
            // An item or a statement ends with its braces, or what comes after them is none that matters.
            Delimiter::Brace => std::mem::take(&mut self.head),
            _ => Head::default(),
        };
        let inside = match (self.inside, head.keyword) {
            (Inside::Macro, _) => Inside::Macro,
            _ if is_call => Inside::Macro,
            (_, Some(Keyword::Impl)) => Inside::Impl,
            _ => Inside::Free,
        };
        Scope::new(group.stream(), self.path_to(head.name), inside)
    }

    fn path_to(&self, name: Option<Ident>) -> Rc<str> {
        let Some(name) = name else { return Rc::clone(&self.path) };
        let name = syn::ext::IdentExt::unraw(&name);
        match self.path.is_empty() {
            true => name.to_string().into(),
            false => format!("{}::{name}", self.path).into(),
        }
    }

    /// Takes the attributes of which `hash` begins the first; and what they are on, if one is ours.
    fn attributes(&mut self, hash: Punct) -> Option<Item> {
        let (mut tokens, mut ours) = (TokenStream::new(), None);
        let mut hash = Some(TokenTree::from(hash));
        while let Some(mark) = hash.take() {
            let group = self.tokens.next_if(|t| matches!(t, TokenTree::Group(_)));
            let Some(TokenTree::Group(group)) = group else { break };
            match arguments(group.stream()).filter(|_| ours.is_none()) {
                Some(attr) => ours = Some((Place { start: mark.span(), end: group.span_close() }, attr)),
                None => tokens.extend([mark, group.into()]),
            }
            hash = self.tokens.next_if(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == '#'));
        }
        let (place, attr) = ours?;
        self.head = Head::default();
        for token in self.tokens.by_ref() {
            let ends = match &token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(mark) => mark.as_char() == ';',
                TokenTree::Ident(word) => {
                    self.head.word(word.clone());
                    false
                }
                TokenTree::Literal(_) => false,
            };
            tokens.extend([token]);
            if ends {
                break;
            }
        }
        let name = std::mem::take(&mut self.head).name;
        Some(Item { path: self.path_to(name), place, attr, tokens, inside: self.inside })
    }
}

impl Head {
    fn word(&mut self, word: Ident) {
        let is = |words: &[&str]| words.iter().any(|w| word == w);
        if self.keyword.is_none() && is(&["mod", "fn"]) {
            self.keyword = Some(Keyword::Named);
        } else if self.keyword.is_none() && !self.begun && is(&["impl", "trait"]) {
            self.keyword = Some(Keyword::Impl);
        } else if self.word.as_ref().is_some_and(|last| last == "mod" || last == "fn") && self.name.is_none()
        {
            // Not after `fn(`: that is a type.
            self.name = Some(word.clone());
        }
        self.begun |= !is(&["pub", "unsafe", "auto", "default"]);
        // `macro_rules! name { … }`
        self.called.take_if(|called| called != "macro_rules");
        self.word = Some(word);
    }

    fn mark(&mut self, mark: char) {
        match (mark, self.word.take()) {
            (';', _) => *self = Head::default(),
            // `if !x { … }` calls nothing.
            ('!', Some(name)) if !is_keyword(&name) => self.called = Some(name),
            _ => self.called = None,
        }
        self.begun |= mark != ';';
    }
}

/// What is between the parentheses of an attribute, if that is ours; also where `cfg_attr` decides.
fn arguments(attribute: TokenStream) -> Option<TokenStream> {
    let mut attributes = vec![attribute];
    while let Some(attribute) = attributes.pop() {
        let (mut name, mut tokens) = (None, attribute.into_iter());
        let after = loop {
            match tokens.next() {
                Some(TokenTree::Ident(word)) => name = Some(word),
                Some(TokenTree::Punct(mark)) if mark.as_char() == ':' => {}
                other => break other,
            }
        };
        let inner = match after {
            Some(TokenTree::Group(group)) => group.stream(),
            // `#[fused_pattern = …]` does not reach a macro either: the compiler refuses it.
            _ => TokenStream::new(),
        };
        match name {
            Some(name) if name == "fused_pattern" => return Some(inner),
            Some(name) if name == "cfg_attr" => {
                let inner = inner.into_iter().collect::<Vec<_>>();
                let is_comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
                let behind = inner.split(is_comma).skip(1);
                attributes.extend(behind.map(|tokens| tokens.iter().cloned().collect::<TokenStream>()));
            }
            _ => {}
        }
    }
    None
}
