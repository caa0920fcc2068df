//! Expressions as people write them, with what they read.

use super::*;

const JINJA: &[(&str, &str)] = &[
    ("backup-{{ now().strftime('%Y-%m-%d') }}.tar", ""),
    ("{{ now().date() }} at {{ now().timestamp() }}", ""),
    (
        "{{ state.log | regex_search('took ([0-9]+) s') | first | int }}",
        "state.log",
    ),
    (r"{{ state.names | regex_findall(r'\w+') }}", "state.names"),
    (
        r"{{ inputs.file | regex_replace(r'\.md$', '.html') }}",
        "inputs.file",
    ),
    ("{{ (state.answer | parse_json).titles }}", "state.answer"),
    ("{{ state.order | tojson(indent=4) }}", "state.order"),
    ("cache-{{ inputs.lock | hash }}", "inputs.lock"),
    (
        "{{ state.votes >= 3 and not state.vetoed }}",
        "state.votes state.vetoed",
    ),
    (
        "{{ state.jobs | selectattr('state', 'equalto', 'done') | list | length }} of {{ state.jobs | length }}",
        "state.jobs state.jobs",
    ),
    ("{{ (done / all * 100) | round(1) }}", "done all"),
    (r"{{ state.lines.strip().split('\n') }}", "state.lines"),
    ("{{ state.host is defined }}", "state.host?"),
    ("{{ inputs.region | default('eu') }}", "inputs.region?"),
    (
        "{% for one in state.findings %}{{ one.title }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "state.findings",
    ),
    ("{{ 'yes' if state.ok else 'no' }}", "state.ok"),
    (
        "{{ state['first name'] }} {{ state.by[inputs.key] }}",
        "state.first name state.by[] inputs.key",
    ),
];

#[test]
fn jinja_templates_are_read_without_a_fault() {
    for (text, reads) in JINJA {
        assert_eq!(read_paths(text, Jinja).join(" "), *reads, "{text}");
    }
}

#[test]
fn variables_of_the_state_machines_are_found() {
    for (text, names) in [
        ("{session_id}", "session_id"),
        ("{open_shell} said {match_text}", "open_shell match_text"),
        ("export LOG=${HOME}/log && echo {message}", "message"),
    ] {
        let found: Vec<_> = braced(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found.join(" "), names);
        assert_eq!(template(&unbrace(text), Jinja).faults, []);
    }
}

#[cfg(feature = "js")]
const JS: &[(&str, &str)] = &[
    ("{{ uuid() }}", ""),
    ("{{ owners[item].mail }}", "owners[] item"),
    ("raw.pages.{{ item | path_to_key }}.done", "item"),
    ("{{ left > 0 && !stopped }}", "left stopped"),
    ("{{ pages.length }} pages", "pages.length"),
    ("{{ inputs.depth || 2 }}", "inputs.depth"),
    ("Gave up: {{ error.message }}", "error.message"),
];

#[cfg(feature = "js")]
const TRANSFORMS: &[(Shape, &str, &str)] = &[
    (
        Shape::Expression,
        "input\n  .map(p => p.trim())\n  .filter(p => p !== '')\n",
        "input",
    ),
    (
        Shape::Expression,
        "input.reduce((groups, page) => {
           const letter = page[0];
           if (!groups[letter]) groups[letter] = [];
           groups[letter].push(page);
           return groups;
         }, {})",
        "input",
    ),
    (
        Shape::Expression,
        "input[0].filter(page => !input[1][page.id])",
        "input.0 input.1[]",
    ),
    (
        Shape::Expression,
        "{ pages: input[0].length, broken: input[1].broken || 0 }",
        "input.0.length input.1.broken",
    ),
    (
        Shape::Expression,
        "input.map(page => ({ page, seen: visits.pages?.includes(page), rank: ranking?.indexOf(page) }))",
        "input visits.pages? ranking?",
    ),
    (
        Shape::Expression,
        "Object.keys(input).length + Math.max(...sizes)",
        "input sizes",
    ),
    (
        Shape::Expression,
        "typeof output === 'string' && !isNaN(output)",
        "output? output",
    ),
    (
        Shape::Body,
        "try {
           return JSON.parse(input);
         } catch (fault) {
           return { text: input, fault: String(fault) };
         }",
        "input input",
    ),
    (
        Shape::Expression,
        "[...new Set(input[1].map(page => page.host))]",
        "input.1",
    ),
];

#[cfg(feature = "js")]
#[test]
fn javascript_templates_and_transforms_are_read_without_a_fault() {
    for (text, reads) in JS {
        assert_eq!(read_paths(text, Js).join(" "), *reads, "{text}");
    }
    for (shape, text, reads) in TRANSFORMS {
        let found = transform(text);
        assert_eq!(found.analysis.faults, [], "{text}");
        assert_eq!(paths(&found.analysis.reads).join(" "), *reads, "{text}");
        assert_eq!(found.shape, *shape, "{text}");
    }
}
