//! What a launch moves, and how fast that can be.

use seamline_codegen::program::Program;
use serde::Serialize;

/// Bytes per second of an H200's memory, and of its NVLink in one direction: 4.8 TB/s and half of 900 GB/s, from NVIDIA's data
/// sheet.
const MEMORY: f64 = 4.8e12;
const LINK: f64 = 450e9;

/// What one rank moves.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Moved {
    /// Of its arguments, each read or written once; a row of every expert counts.
    pub bytes: u64,
    /// To all other ranks together.
    pub sent_bytes: u64,
    /// The time that the slower of the two takes on an H200, at best.
    pub floor_us: f64,
}

impl Moved {
    /// By a launch of `tokens` tokens.
    pub fn new(program: &Program, tokens: u64) -> Moved {
        let dims = &program.dims;
        let reads = program.present().map(|(id, _)| program.tensor(id).moved(tokens, dims.top_k));
        let row = tokens * u64::from(dims.hidden);
        let writes = program.outputs.iter().map(|output| output.tensor.moved(tokens, dims.top_k));
        let bytes = reads.sum::<u64>() + writes.sum::<u64>();
        let sent_bytes = match program.exchanges() {
            true => row * dims.wire.size() as u64 * u64::from(dims.ranks - 1),
            false => 0,
        };
        let floor_us = 1e6 * (bytes as f64 / MEMORY).max(sent_bytes as f64 / LINK);
        Moved { bytes, sent_bytes, floor_us }
    }
}

/// `704 MB`, with a prefix of SI.
pub fn text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 999.5 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || amount >= 99.95 { 0 } else { 1 };
    format!("{amount:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use seamline::patterns::MoeFinalizeArResidualRmsnorm;
    use seamline::{DType, Definition};
    use seamline_codegen::{Dims, Presence, Request};

    #[test]
    fn the_floor_is_the_slower_of_memory_and_links() {
        let moved = |ranks, tokens| {
            let request = Request { hidden: Some(7168), top_k: Some(8), dtype: Some(DType::Bf16), ranks };
            let graph = MoeFinalizeArResidualRmsnorm::GRAPH;
            let dims = Dims::bind(graph, &request, Presence::ALL).unwrap();
            Moved::new(&graph.bind(&dims).unwrap(), tokens)
        };
        // Eight rows of experts, the shared expert's, the residual, and two results; the map and the weights; gamma.
        let alone = moved(1, 4096);
        assert_eq!(alone.bytes, 4096 * (12 * 7168 * 2 + 8 * 4 + 8 * 4) + 7168 * 2);
        assert_eq!(alone.sent_bytes, 0);
        assert!((alone.floor_us - 146.9).abs() < 0.1, "{alone:?}");
        let eight = moved(8, 1);
        assert_eq!(eight.sent_bytes, 7 * 7168 * 2);
        assert!((eight.floor_us - 0.223).abs() < 1e-3, "{eight:?}");
    }

    #[test]
    fn amounts_have_two_to_three_digits() {
        let texts = [0, 999, 1_000, 12_345, 704_643_072, 999_999].map(text);
        assert_eq!(texts, ["0 B", "999 B", "1.0 kB", "12.3 kB", "705 MB", "1.0 MB"]);
    }
}
