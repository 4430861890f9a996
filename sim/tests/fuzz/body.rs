//! Random patterns: every one is valid, and may use all that the grammar has.

use fastrand::Rng;
use seamline_codegen::program::Space;
use std::fmt::Write;

/// The source text of the pattern that `rng` makes.
pub fn pattern(rng: Rng) -> String {
    let mut writer = Writer { rng, ..Writer::default() };
    let collective = writer.rng.u8(..8) > 0;
    let statements = writer.rng.usize(1..=6);
    let exchange = collective.then(|| writer.rng.usize(..statements));
    for at in 0..statements {
        writer.statement(exchange == Some(at));
    }
    writer.finish(collective)
}

#[derive(Default)]
struct Writer {
    rng: Rng,
    params: Vec<Param>,
    /// What the body has named.
    values: Vec<Value>,
    body: String,
}

struct Param {
    name: String,
    /// Without its dtype.
    ty: &'static str,
    dtype: &'static str,
    optional: bool,
    mutable: bool,
}

struct Value {
    name: String,
    space: Space,
    mutable: bool,
    /// Whether anything reads what it is now.
    read: bool,
    /// The parameter that it overwrites, and whether anything was assigned to that yet.
    param: Option<usize>,
    assigned: bool,
}

const DTYPES: [&str; 4] = ["", "<bf16>", "<f16>", "<f32>"];
/// Where decimal to binary, constant folding and printing could go wrong.
const LITERALS: [&str; 12] =
    ["1.0", "1.0", "1.0", "2", "0.1", "1_0.5", "0.333333343", "1e-6", "16777217.0", "0.0", "3.0e38", "1e-40"];

impl Writer {
    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.usize(..from.len())]
    }

    fn once_in(&mut self, n: usize) -> bool {
        self.rng.usize(..n) == 0
    }

    /// Names a new value, or assigns to one.
    fn statement(&mut self, exchange: bool) {
        let depth = self.rng.usize(1..=3);
        let mutable = (0..self.values.len()).filter(|&i| self.values[i].mutable).collect::<Vec<_>>();
        match exchange || mutable.is_empty() || self.rng.bool() {
            true => self.bind(exchange, depth),
            false => {
                let i = self.choose(&mutable);
                self.assign(i, depth);
            }
        }
    }

    fn bind(&mut self, exchange: bool, depth: usize) {
        use Space::*;
        let space = match exchange {
            true => TokenChannel,
            false => self.choose(&[Uniform, Token, Channel, TokenChannel, TokenChannel, TokenChannel]),
        };
        let value = match exchange {
            true => self.exchange(depth),
            false => self.operation(space, depth),
        };
        let mutable = self.once_in(4);
        let hidden = self.values.iter().position(|v| v.read && v.param.is_none()).filter(|_| self.once_in(4));
        let name = match hidden {
            Some(i) => self.values.remove(i).name,
            None => format!("v{}", self.body.lines().count()),
        };
        writeln!(self.body, "    let {}{name} = {value};", if mutable { "mut " } else { "" }).unwrap();
        self.values.push(Value { name, space, mutable, read: false, param: None, assigned: true });
    }

    fn assign(&mut self, i: usize, depth: usize) {
        let value = self.operation(self.values[i].space, depth);
        let assigned = &mut self.values[i];
        // To assign over what nothing has read would be a mistake in the body.
        let operator = if assigned.read { "=" } else { "+=" };
        (assigned.read, assigned.assigned) = (false, true);
        writeln!(self.body, "    {} {operator} {value};", assigned.name).unwrap();
    }

    /// The collective, alone or in an expression.
    fn exchange(&mut self, depth: usize) -> String {
        let x = self.value(Space::TokenChannel, depth);
        let sum = format!("all_reduce({x})");
        match self.rng.u8(..3) {
            0 => sum,
            1 => {
                let (operator, other) = (self.operator(), self.value(Space::TokenChannel, depth));
                format!("{sum} {operator} {other}")
            }
            _ => {
                let (other, operator) = (self.value(Space::TokenChannel, depth), self.operator());
                format!("{other} {operator} {sum}")
            }
        }
    }

    fn operator(&mut self) -> &'static str {
        self.choose(&["+", "-", "*"])
    }

    /// What stands for a value over `space` in an expression.
    fn value(&mut self, space: Space, depth: usize) -> String {
        match depth == 0 || self.once_in(3) {
            true => self.leaf(space),
            false => format!("({})", self.operation(space, depth)),
        }
    }

    /// One operation, so that it computes something new.
    fn operation(&mut self, space: Space, depth: usize) -> String {
        use Space::*;
        let depth = depth.saturating_sub(1);
        match (space, self.rng.u8(..8)) {
            (_, 0) => format!("-{}", self.value(space, depth)),
            (TokenChannel, 1 | 2) => {
                let (x, over) = (self.value(TokenChannel, depth), self.choose(&[Channel, Channel, Uniform]));
                let w = self.value(over, depth);
                let eps = match self.rng.u8(..4) {
                    0 => self.value(Uniform, depth),
                    1 => "1e-6".to_owned(),
                    _ => self.param("Scalar", false),
                };
                match self.once_in(3) {
                    true => {
                        let over = self.choose(&[Channel, Uniform]);
                        format!("layer_norm({x}, {w}, {}, {eps})", self.value(over, depth))
                    }
                    false => format!("rms_norm({x}, {w}, {eps})"),
                }
            }
            (TokenChannel, 3) => self.finalize(),
            (Token | Channel | TokenChannel, 4) => {
                let wide = self.value(space, depth);
                let over = match space {
                    TokenChannel => self.choose(&[Token, Channel, TokenChannel]),
                    same => same,
                };
                let optional = self.param(role(over), true);
                match self.rng.u8(..4) {
                    0 => format!("{optional} - {wide}"),
                    1 => format!("{wide} - {optional}"),
                    _ => format!("{wide} + {optional}"),
                }
            }
            _ => {
                let pairs: &[(Space, Space)] = match space {
                    Uniform => &[(Uniform, Uniform)],
                    Token => &[(Token, Token), (Token, Uniform)],
                    Channel => &[(Channel, Channel), (Channel, Uniform)],
                    TokenChannel => &[
                        (TokenChannel, TokenChannel),
                        (TokenChannel, TokenChannel),
                        (TokenChannel, Channel),
                        (TokenChannel, Token),
                        (TokenChannel, Uniform),
                        (Token, Channel),
                    ],
                };
                let (left, right) = self.choose(pairs);
                let (left, right) = if self.rng.bool() { (left, right) } else { (right, left) };
                let (left, operator) = (self.value(left, depth), self.operator());
                format!("{left} {operator} {}", self.value(right, depth))
            }
        }
    }

    fn finalize(&mut self) -> String {
        let (rows, map) = (self.param("Permuted", false), self.param("RowMap", false));
        let optional = self.once_in(3);
        format!("finalize({rows}, {map}, {})", self.param("ExpertWeights", optional))
    }

    /// A name or a literal.
    fn leaf(&mut self, space: Space) -> String {
        let any = self.rng.bool();
        let fits = |v: &Value| v.space == space && (any || !v.read);
        let known = (0..self.values.len()).filter(|&i| fits(&self.values[i])).collect::<Vec<_>>();
        if !known.is_empty() && !self.once_in(3) {
            let i = self.choose(&known);
            self.values[i].read = true;
            return self.values[i].name.clone();
        }
        match space {
            Space::Uniform if self.rng.bool() => self.choose(&LITERALS).to_owned(),
            Space::TokenChannel if self.once_in(5) => self.in_place(),
            _ => self.param(role(space), false),
        }
    }

    /// A parameter that the body will write; it is read here, and assigned to later.
    fn in_place(&mut self) -> String {
        let name = self.new_param("Tokens", false);
        let param = self.params.len() - 1;
        self.params[param].mutable = true;
        let value = Value {
            name: name.clone(),
            space: Space::TokenChannel,
            mutable: true,
            read: true,
            param: Some(param),
            assigned: false,
        };
        self.values.push(value);
        name
    }

    /// The name of a parameter: one that is there, or a new one.
    fn param(&mut self, ty: &'static str, optional: bool) -> String {
        let fits = |p: &&Param| p.ty == ty && p.optional == optional && !p.mutable;
        let there = self.params.iter().filter(fits).map(|p| p.name.clone()).collect::<Vec<_>>();
        // Room for the outputs must stay.
        if !there.is_empty() && (self.rng.bool() || self.params.len() > 20) {
            return there[self.rng.usize(..there.len())].clone();
        }
        self.new_param(ty, optional)
    }

    fn new_param(&mut self, ty: &'static str, optional: bool) -> String {
        let dtype = match ty {
            "RowMap" | "Scalar" => "",
            _ => self.choose(&DTYPES),
        };
        let name = format!("p{}", self.params.len());
        self.params.push(Param { name: name.clone(), ty, dtype, optional, mutable: false });
        name
    }

    /// Returns what nothing has read and what is in place, and puts the rest together.
    fn finish(mut self, collective: bool) -> String {
        // A `mut` parameter must be assigned to.
        while let Some(i) = self.values.iter().position(|v| !v.assigned) {
            self.assign(i, 1);
        }
        let mut rest = Vec::new();
        let mut outputs = Vec::new();
        for value in &self.values {
            let returned = value.space == Space::TokenChannel
                && (!value.read && outputs.len() < 4 || self.rng.u8(..4) == 0);
            if value.param.is_some() || returned {
                outputs.push((value.name.clone(), value.param));
            } else if !value.read {
                rest.push(value.name.clone());
            }
        }
        if !rest.is_empty() || outputs.is_empty() {
            rest.push(self.param("Tokens", false));
            writeln!(self.body, "    let out = -({});", rest.join(" + ")).unwrap();
            outputs.push(("out".to_owned(), None));
        }
        let rows = self.values.iter().filter(|v| v.space == Space::TokenChannel).map(|v| v.name.clone());
        let rows = rows.collect::<Vec<_>>();
        if !rows.is_empty() && self.once_in(3) && outputs.len() < 4 && self.params.len() < 22 {
            let x = rows[self.rng.usize(..rows.len())].clone();
            writeln!(self.body, "    let (fp8, scale) = quant_fp8_per_token({x});").unwrap();
            outputs.extend(["fp8", "scale"].map(|name| (name.to_owned(), None)));
        }
        self.rng.shuffle(&mut outputs);
        self.text(collective, &outputs)
    }

    fn text(&mut self, collective: bool, outputs: &[(String, Option<usize>)]) -> String {
        let dtype = self.choose(&["bf16", "f16", "f32"]);
        let wire = match collective && self.once_in(3) {
            true => format!(", wire = {}", self.choose(&["bf16", "f16", "f32"])),
            false => String::new(),
        };
        let mut text = format!("#[fused_pattern(dtype = {dtype}{wire})]\npub fn random(\n");
        for Param { name, ty, dtype, optional, mutable } in &self.params {
            let ty = match optional {
                true => format!("Option<{ty}{dtype}>"),
                false => format!("{ty}{dtype}"),
            };
            writeln!(text, "    {}{name}: {ty},", if *mutable { "mut " } else { "" }).unwrap();
        }
        let types = outputs.iter().map(|(name, param)| match param {
            None if name == "fp8" => "Quantized<e4m3>".to_owned(),
            None if name == "scale" => format!("PerToken{}", DTYPES[self.rng.usize(..DTYPES.len())]),
            Some(param) => format!("Tokens{}", self.params[*param].dtype),
            None => format!("Tokens{}", DTYPES[self.rng.usize(..DTYPES.len())]),
        });
        let types = types.collect::<Vec<_>>().join(", ");
        let names = outputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        format!("{text}) -> ({types},) {{\n{}    ({names},)\n}}\n", self.body)
    }
}

fn role(space: Space) -> &'static str {
    match space {
        Space::Uniform => "Scalar",
        Space::Token => "PerToken",
        Space::Channel => "Channels",
        Space::TokenChannel => "Tokens",
    }
}
