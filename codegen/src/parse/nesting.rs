//! How deep source nests. The parser recurses, and the stack that it is given ends.

use super::{Diagnostic, Place, Reported};
use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Ident, Punct, Spacing, TokenStream, TokenTree};

/// The most levels that may be around a token.
pub(super) const LEVELS: usize = 40;
/// The most tokens that may be in front of one, in its statement and in those that it is nested in.
pub(super) const TOKENS: usize = 1000;

/// Refuses tokens that the parser might not come back from.
///
/// It goes down a level for every group, and also for what no group surrounds: operators in front (`---x`), keywords
/// (`return return x`), closures, assignments and generics. What it makes of a chain (`a + b + …`) is as deep as the chain is long,
/// at less stack for each. So both are counted, from the beginning of the statement or of the element of a list.
/// Unoptimised, a level takes up to 60 KiB of stack, and an operator of a chain 3 KiB.
pub(super) fn check(tokens: &TokenStream) -> Result<(), Reported> {
    let mut open = vec![Group::new(tokens, Depth::default())];
    while let Some(group) = open.last_mut() {
        let Some(token) = group.tokens.next() else {
            open.pop();
            continue;
        };
        let span = match &token {
            TokenTree::Group(inner) => inner.span_open(),
            other => other.span(),
        };
        let depth = group.count(&token);
        if depth.levels > LEVELS || depth.tokens > TOKENS {
            return Err(Diagnostic::TooDeep {}.at(Place { start: span, end: span }));
        }
        if let TokenTree::Group(inner) = token {
            open.push(Group::new(&inner.stream(), depth));
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Depth {
    levels: usize,
    tokens: usize,
}

/// A group, as far as it has been looked at.
struct Group {
    tokens: IntoIter,
    /// Where the group is.
    outside: Depth,
    /// In the statement or element so far.
    here: Depth,
    /// No operand has come since the beginning or the last operator: another operator stands in front.
    front: bool,
    /// What may be the first half of an operator.
    half: Option<Punct>,
}

impl Group {
    fn new(tokens: &TokenStream, outside: Depth) -> Group {
        Group { tokens: tokens.clone().into_iter(), outside, here: outside, front: true, half: None }
    }

    /// Where `token` is; of a group, where its inside is.
    fn count(&mut self, token: &TokenTree) -> Depth {
        self.here.tokens += 1;
        let half = self.half.take();
        match token {
            TokenTree::Punct(punct) if matches!(punct.as_char(), ',' | ';') => self.restart(),
            TokenTree::Punct(punct) => {
                let whole = half.as_ref().is_some_and(|half| is_operator(half, punct));
                if matches!(punct.as_char(), '<' | '=' | '|') || self.front && !whole {
                    self.here.levels += 1;
                }
                self.half = (!whole).then(|| punct.clone());
                self.front = true;
            }
            TokenTree::Ident(word) => {
                self.front = is_keyword(word);
                self.here.levels += usize::from(self.front);
            }
            TokenTree::Literal(_) => self.front = false,
            TokenTree::Group(_) => {
                let inside = Depth { levels: self.here.levels + 1, ..self.here };
                self.front = false;
                // Of attributes there may be as many as lines of documentation.
                if half.is_some_and(|half| half.as_char() == '#') {
                    self.restart();
                }
                return inside;
            }
        }
        self.here
    }

    /// Another statement or element begins.
    fn restart(&mut self) {
        (self.here, self.front) = (self.outside, true);
    }
}

/// Whether two characters are one operator.
fn is_operator(first: &Punct, second: &Punct) -> bool {
    const PAIRS: [&str; 13] = ["::", "->", "=>", "..", "&&", "||", "<<", ">>", "==", "!=", "<=", ">=", "+="];
    let pair = [first.as_char(), second.as_char()];
    first.spacing() == Spacing::Joint && PAIRS.iter().any(|p| p.chars().eq(pair))
}

pub(super) fn is_keyword(word: &Ident) -> bool {
    syn::parse2::<Ident>(TokenTree::from(word.clone()).into()).is_err()
}

#[cfg(test)]
mod tests {
    use super::super::{Parsed, parse};
    use super::*;

    /// What nests: before, each level's opening, what is inside, each level's closing.
    const FORMS: [[&str; 4]; 27] = [
        ["", "(", "x", ")"],
        ["", "[", "x", "]"],
        ["", "{", "x", "}"],
        ["", "all_reduce(", "x", ")"],
        ["", "-", "x", ""],
        ["", "- ", "x", ""],
        ["", "&", "x", ""],
        ["", "&mut ", "x", ""],
        ["", "!", "x", ""],
        ["", "..", "x", ""],
        ["", "return ", "x", ""],
        ["", "|x|", "x", ""],
        ["", "|x| ", "x", ""],
        ["", "x = ", "x", ""],
        ["", "if x {", "x", "}"],
        ["", "match x { _ => ", "x", "}"],
        ["x", "", "", " + x"],
        ["x", "", "", ".f()"],
        ["x", "", "", ".f"],
        ["x", "", "", "[0]"],
        ["x", "", "", "?"],
        ["x", "", "", " as u8"],
        ["x", "", "", " else if x {}"],
        ["f::", "<A", "", ">"],
        ["x as ", "*const ", "A", ""],
        ["x as ", "fn() -> ", "A", ""],
        ["x as ", "<", "A", ">::A"],
    ];

    fn parsed(expression: &str) -> Parsed {
        let source = format!("fn p(x: Tokens) -> Tokens {{ let y = {expression}; y }}");
        parse(TokenStream::new(), source.parse().expect("brackets match")).expect("it is a fn")
    }

    fn is_too_deep(parsed: &Parsed) -> bool {
        matches!(parsed.diagnostics.as_slice(), [Reported { diagnostic: Diagnostic::TooDeep {}, .. }])
    }

    #[test]
    fn whatever_nests_is_parsed_or_refused_at_any_depth() {
        for [before, open, inside, close] in FORMS {
            for n in [1, 5, 10, 30, 35, 38, 40, 45, 100, 300, 490, 700, 1000, 3000, 20_000] {
                let source = [before, &open.repeat(n), inside, &close.repeat(n)].concat();
                let parsed = parsed(&source);
                assert!(n < 3000 || is_too_deep(&parsed), "{n} of `{open}{close}`");
                assert_eq!(parsed.outputs.len(), 1, "the bundle is whole: {n} of `{open}{close}`");
            }
        }
    }

    #[test]
    fn what_people_write_is_not_too_deep() {
        let polynomial = format!("{}x{}", "0.5 + x * (".repeat(30), ")".repeat(30));
        let sum = vec!["x"; 400].join(" + ");
        for expression in ["-(-x + 1.0) * -2.0", &polynomial, &sum] {
            assert!(parsed(expression).diagnostics.is_empty(), "{expression}");
        }
        let docs = "/// One line of many.\n".repeat(5000);
        let source = format!("{docs} fn p(x: Tokens) -> Tokens {{ {} x }}", "let x = -x;".repeat(200));
        let parsed = parse(TokenStream::new(), source.parse().unwrap()).unwrap();
        assert!(!parsed.diagnostics.iter().any(|r| r.diagnostic == Diagnostic::TooDeep {}));
    }

    #[test]
    fn signatures_and_attributes_nest_no_deeper() {
        let deep = |open: &str, close: &str| format!("{}f32{}", open.repeat(5000), close.repeat(5000));
        let result = |attr: &str, ty: &str| {
            let item = format!("fn p(x: {ty}) -> Tokens {{ x }}");
            let parsed = parse(attr.parse().unwrap(), item.parse().unwrap());
            parsed.map_or_else(|r| r.diagnostic, |p| p.diagnostics[0].diagnostic.clone())
        };
        assert_eq!(result("", &deep("(", ")")), Diagnostic::TooDeep {});
        assert_eq!(result("", &deep("Tokens<", ">")), Diagnostic::TooDeep {});
        assert_eq!(result(&format!("hidden = {}", deep("(", ")")), "Tokens"), Diagnostic::TooDeep {});
    }
}
