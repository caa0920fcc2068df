//! The colours and type of a picture, in light and in dark.
//!
//! Every colour is declared twice, first as itself and then as a custom property, so that a page can
//! set its own colours and a viewer without custom properties still shows the light ones.

/// Names of custom properties with their light and dark values.
const COLOURS: [(&str, &str, &str); 20] = [
    ("paper", "#ffffff", "#0d1117"),
    ("card", "#ffffff", "#161b22"),
    ("ink", "#1f2328", "#e6edf3"),
    ("soft", "#59636e", "#9198a1"),
    ("rule", "#d1d9e0", "#343b45"),
    ("panel", "#f6f8fa", "#12171f"),
    ("plain", "#6e7781", "#7d8590"),
    ("aside", "#8c959f", "#6e7681"),
    ("trouble", "#cf222e", "#f0645c"),
    ("task", "#8250df", "#a884f0"),
    ("teal", "#0f766e", "#2dd4bf"),
    ("blue", "#1d5fd6", "#6cb0ff"),
    ("amber", "#a15c07", "#f2b13c"),
    ("orange", "#c2410c", "#fb923c"),
    ("green", "#15803d", "#4ac26b"),
    ("slate", "#57606a", "#9aa4af"),
    ("rose", "#be185d", "#f47fb2"),
    ("cyan", "#0e7490", "#39c5db"),
    ("violet", "#6d3fc4", "#b794f6"),
    ("indigo", "#4547c9", "#8f9cff"),
];

/// The colours of kinds, by class.
const ACCENTS: [&str; 10] = [
    "teal", "blue", "amber", "orange", "green", "slate", "rose", "cyan", "violet", "indigo",
];

/// A selector, its coloured properties, and everything else about it.
type Rule = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// The style sheet of a picture.
pub(super) fn sheet() -> String {
    let mut css = String::new();
    css.push_str(".flow-picture{");
    for (name, light, _) in COLOURS {
        css.push_str(&format!("--{name}:{light};"));
    }
    css.push_str("}\n@media (prefers-color-scheme:dark){.flow-picture{");
    for (name, _, dark) in COLOURS {
        css.push_str(&format!("--{name}:{dark};"));
    }
    css.push_str("}}\n");

    let rules: [Rule; 20] = [
        (
            "text",
            &[("fill", "ink")],
            "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif",
        ),
        (".sheet", &[("fill", "paper")], ""),
        (".name", &[], "font-size:20px;font-weight:600"),
        (".version", &[("fill", "soft")], "font-size:12px"),
        (".about", &[("fill", "soft")], "font-size:13px"),
        (".heading", &[], "font-size:13px;font-weight:600"),
        (".small", &[("fill", "soft")], "font-size:11px"),
        (".id", &[], "font-size:13px;font-weight:600"),
        (".word", &[], "font-size:10.5px;fill:currentColor"),
        (
            ".line",
            &[("fill", "soft")],
            "font-size:11px;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace",
        ),
        (
            ".note",
            &[("fill", "soft")],
            "font-size:10.5px;font-style:italic",
        ),
        (
            ".card",
            &[("fill", "card"), ("stroke", "rule")],
            "stroke-width:1.25",
        ),
        (".shade", &[], "fill:#000;fill-opacity:.05"),
        (".tile", &[], "fill:currentColor;fill-opacity:.12"),
        (
            ".icon",
            &[],
            "fill:none;stroke:currentColor;stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round",
        ),
        (
            ".loop",
            &[("fill", "green"), ("stroke", "green")],
            "fill-opacity:.045;stroke-opacity:.28;stroke-width:1",
        ),
        (
            ".panel",
            &[("fill", "panel"), ("stroke", "rule")],
            "stroke-width:1.25",
        ),
        (".mark", &[("fill", "ink")], ""),
        (
            ".ring",
            &[("fill", "paper"), ("stroke", "ink")],
            "stroke-width:1.75",
        ),
        (".tag", &[("fill", "paper")], "fill-opacity:.94"),
    ];
    for (selector, colours, rest) in rules {
        css.push_str(&format!(".flow-picture {selector}{{"));
        for (property, name) in colours {
            css.push_str(&paint(property, name));
        }
        css.push_str(&format!("{rest}}}\n"));
    }
    for tone in ["plain", "aside", "trouble", "task"] {
        let dash = match tone {
            "aside" => ";stroke-dasharray:4 4",
            "task" => ";stroke-dasharray:2 5;stroke-linecap:round",
            _ => "",
        };
        css.push_str(&format!(
            ".flow-picture .way.{tone}{{fill:none;{}stroke-width:1.5{dash}}}\n",
            paint("stroke", tone)
        ));
        css.push_str(&format!(
            ".flow-picture .tip.{tone}{{{}}}\n.flow-picture .said.{tone}{{{}font-size:10.5px}}\n",
            paint("fill", tone),
            paint("fill", if tone == "plain" { "soft" } else { tone }),
        ));
    }
    for accent in ACCENTS {
        css.push_str(&format!(
            ".flow-picture .{accent}{{{}}}\n",
            paint("color", accent)
        ));
    }
    css
}

fn paint(property: &str, name: &str) -> String {
    let light = COLOURS
        .iter()
        .find(|(known, ..)| *known == name)
        .map_or("#000", |(_, light, _)| light);
    format!("{property}:{light};{property}:var(--{name});")
}
