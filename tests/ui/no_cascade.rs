use seamline::prelude::*;

#[fused_pattern]
fn generic<T>(x: Tokens<T>, y: Option<T>) -> T {
    let z = x + y;
    z
}

#[fused_pattern]
fn pair((a, b): (Tokens, Tokens)) -> Tokens {
    let y = a + b;
    y
}

#[fused_pattern]
fn semicolon(x: Tokens) -> (Tokens, Tokens) {
    let y = -x;
    let z = y * x;
    (y, z);
}

#[fused_pattern]
fn helper(x: Tokens) -> Tokens {
    const HALF: f32 = 0.5;
    let y = x * HALF;
    y
}

#[fused_pattern]
fn documented(
    /// What is negated.
    x: Tokens,
) -> Tokens {
    let y = -x;
    y
}

#[fused_pattern]
fn assigned(x: Tokens, y: Tokens) -> Tokens {
    x += y;
    x
}

/// The types and bundles are there all the same.
fn uses(args: AssignedArgs<'_>) {
    let _ = (Pair::GRAPH, Semicolon::GRAPH, Helper::GRAPH, Documented::GRAPH);
    let _ = (args.tokens, args.x, args.y);
}

fn main() {}
