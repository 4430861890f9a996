//! Entry points: one per geometry.

use super::{Entry, Target, ident};
use crate::Program;
use crate::schedule::Geometry;

pub(super) fn entries(program: &Program, target: &Target) -> Vec<Entry> {
    let name = |g: &Geometry| {
        let stem = ident::ascii(&program.name);
        let mut name = format!("{stem}_{}_{}x{}", g.schedule.name(), g.ctas, g.threads);
        if g.vectors > 1 {
            name += &format!("x{}", g.vectors);
        }
        if g.blocks_per_sm > 1 {
            name += &format!("_by{}", g.blocks_per_sm);
        }
        for (is, suffix) in [(g.streaming, "_streaming"), (g.waves, "_waves")] {
            name += if is { suffix } else { "" };
        }
        name
    };
    let plain = target.geometries.iter().map(|g| Entry { name: name(g), geometry: *g, one_grid: false });
    let one_grid = target.geometries.iter().filter(|_| target.one_grid).map(|g| Entry {
        name: name(g) + "_one_grid",
        geometry: *g,
        one_grid: true,
    });
    plain.chain(one_grid).collect()
}

pub(super) fn text(entry: &Entry, target: &Target) -> String {
    let g = &entry.geometry;
    let geometry = format!(
        "Geometry<{}, {}, {}, {}, {}, {}>",
        g.ctas, g.threads, g.vectors, g.batch, g.streaming, target.early_trigger
    );
    let schedule = g.schedule.def();
    let waves = if schedule.waves { format!(", {}", g.waves) } else { String::new() };
    let call = format!("{}<Spec, {geometry}{waves}>", schedule.name);
    let (parameter, argument) = match entry.one_grid {
        false => ("SEAMLINE_PARAM Args args", "args"),
        true => ("const Args* ranks", "ranks[device::grid_row()]"),
    };
    format!(
        "\nSEAMLINE_KERNEL({}, {}) {}({parameter}) {{\n  {call}({argument});\n}}\n",
        g.threads, g.blocks_per_sm, entry.name
    )
}
