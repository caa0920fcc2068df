use super::*;

/// Runs everything on `text` and checks what every caller relies on.
fn survives(text: &str) {
    for dialect in [Jinja, Js] {
        for analysis in [
            template(text, dialect),
            expression(text, dialect),
            transform(text).analysis,
        ] {
            let ranges = (analysis.reads.iter().map(|read| &read.range))
                .chain(analysis.faults.iter().map(|fault| &fault.range))
                .chain(analysis.calls.iter().map(|call| &call.range))
                .chain(analysis.filters.iter().map(|filter| &filter.range))
                .chain(analysis.interpolations.iter().map(|found| &found.range));
            for range in ranges {
                assert!(text.get(range.clone()).is_some(), "{range:?} of {text:?}");
            }
        }
        let mut end = 0;
        for piece in pieces(text, dialect) {
            assert_eq!(piece.range().start, end, "{text:?}");
            end = piece.range().end;
        }
        assert_eq!(end, text.len(), "{text:?}");
        if let Form::Sole(range) = form(text, dialect) {
            assert!(text.get(range).is_some());
        }
    }
    for (range, name) in braced(text) {
        assert_eq!(&text[range], format!("{{{name}}}"));
    }
    pipeline(text);
    unbrace(text);
    unraw(text);
    unraw_expression(text);
}

const VALID: &[&str] = &[
    "é {{ state.user['näme'][i + 1].x | default([1, {'a': (2, 3)}]) }} ü {% for a, b in c if d %}{{ loop.last }}{% else %}x{% endfor %}",
    r#"{%- set x = r'\d\'' ~ "\u00e9" -%}{{- x|regex_search(R"\w") is defined and not y -}}{% raw %}{{ z }}{% endraw %}"#,
    "{% macro m(a, b=1) %}{{ a }}{% endmacro %}{% call m(1) %}{% endcall %}{% with q = 1 %}{% endwith %}{% filter upper %}{% endfilter %}{% if a %}{% elif b %}{% endif %}",
    "{{ `é${ {a: `${b}`}.a }` + /[/]}}\\/'/.test(c) /* } */ | path_to_key(1, 'x') | sh }} {name} ${x}",
    "{{ ((a, {b, c: [d = x]}, ...e) => { const f = a?.b ?? 1; try { return f } catch (l) { throw l } })() }}",
    "{\n  total: input[0].length, // it's\n  kinds: [...new Set(input[1].map(e => e.type))],\n}",
    "if (input) { return 'ü' }\nelse return `${input}`;",
];

#[test]
fn every_prefix_and_suffix_of_valid_text_is_survived() {
    for text in VALID {
        for (at, _) in text.char_indices() {
            survives(&text[..at]);
            survives(&text[at..]);
        }
        survives(text);
    }
}

#[test]
fn valid_text_with_one_character_replaced_is_survived() {
    for text in VALID {
        for (at, letter) in text.char_indices() {
            for other in ["", "{", "}", "'", "\\", "|", "é", "\0"] {
                let after = at + letter.len_utf8();
                survives(&format!("{}{other}{}", &text[..at], &text[after..]));
            }
        }
    }
}

#[test]
fn deep_nesting_is_refused_instead_of_overflowing_the_stack() {
    let shapes = [
        ("(", "x", ")"),
        ("[", "x", "]"),
        ("{'a':", "x", "}"),
        ("{", "x", "}"),
        ("a[", "x", "]"),
        ("f(", "x", ")"),
        ("not ", "x", ""),
        ("-", "x", ""),
        ("- ", "x", ""),
        ("!", "x", ""),
        ("a if b else ", "c", ""),
        ("a ~ ", "b", ""),
        ("a+", "b", ""),
        ("a.", "b", ""),
        ("", "a", "|e"),
        ("", "a", ".b()"),
        ("", "a", "()"),
        ("", "a", "[0]"),
        ("", "a", "[b]"),
        ("a?b:", "c", ""),
        ("a=>", "b", ""),
        ("(a)=>(", "b", ")"),
        ("a=", "b", ""),
        ("a**", "b", ""),
        ("new ", "b", ""),
        ("typeof ", "b", ""),
        ("`${", "b", "}`"),
        ("function(){return ", "1", "}"),
        ("()=>{", "1", "}"),
        ("if(a)", "b", ""),
        ("if(a)b;else ", "b", ""),
        ("if(a){}else ", "b", ""),
        ("a:", "b", ""),
        ("for(;;)", "b", ""),
        ("do ", "b", " while(1)"),
        ("a,", "b", ""),
        ("a;", "b", ""),
        ("return\nx=", "y", ""),
        ("async ()=>", "y", ""),
        ("class{a=", "y", "}"),
        ("x\nconst y=", "y", ""),
        ("a is b ", "c", ""),
        ("a, b = ", "c", ""),
        ("'a' ", "'b'", ""),
        ("/(", "/", ""),
    ];
    let wrappers = [
        ("", ""),
        ("{{ ", " }}"),
        ("{% if ", " %}{% endif %}"),
        ("{% set ", " = 1 %}"),
        ("return ", ""),
    ];
    for (before, middle, after) in shapes {
        for count in [60, 150, 400, 799, 3_000] {
            let text = format!("{}{middle}{}", before.repeat(count), after.repeat(count));
            for (open, close) in wrappers {
                survives(&format!("{open}{text}{close}"));
            }
        }
    }
}

#[test]
fn deeply_nested_statements_are_refused_instead_of_overflowing_the_stack() {
    let brackets = format!("{}x{}", "a[".repeat(64), "]".repeat(64));
    for count in [80, 149, 3_000] {
        for (open, close) in [
            ("{% if x %}", "{% endif %}"),
            ("{% for x in y %}", "{% endfor %}"),
            ("{% with %}", "{% endwith %}"),
            ("{% macro m() %}", "{% endmacro %}"),
            ("{% set x %}", "{% endset %}"),
            ("{% filter upper %}", "{% endfilter %}"),
        ] {
            let (open, close) = (open.repeat(count), close.repeat(count));
            survives(&format!("{open}{{{{ {brackets} }}}}{close}"));
        }
        survives(&format!(
            "{{% if a %}}{}{{% endif %}}",
            "{% elif b %}".repeat(count)
        ));
    }
}

#[test]
fn a_thousand_openings_take_no_longer_than_one_reading() {
    for opening in [
        "{% raw %}",
        "{{ '",
        "{{ r'",
        "{{ `",
        "{{ /*",
        "{{ (",
        "{{ a }} }}",
        "{% if",
        "{a",
    ] {
        survives(&opening.repeat(10_000));
    }
}

#[test]
fn an_ordinary_expression_is_not_too_deep() {
    let nested = format!("{}x{}", "(".repeat(50), ")".repeat(50));
    let sum = vec!["a"; 300].join(" + ");
    let list = format!("[{}]", vec!["a.b + 1"; 2000].join(", "));
    let map = format!("{{{}}}", vec!["'k': a.b"; 2000].join(", "));
    for text in [nested, sum, list, map] {
        for dialect in [Jinja, Js] {
            assert_eq!(expression(&text, dialect).faults, [], "{text}");
        }
    }
    let line = "const row = input.rows.filter(r => r.ok).map(r => ({ id: r.id, n: r.n * 2 }))\n";
    let body = line.repeat(200) + "return row";
    assert_eq!(transform(&body).analysis.faults, []);
}

#[test]
fn an_expression_beyond_64_kib_is_refused() {
    let text = format!("'{}'", "a".repeat(70_000));
    for dialect in [Jinja, Js] {
        let faults = expression(&text, dialect).faults;
        assert_eq!(faults[0].message, "this expression is longer than 64 KiB");
        let faults = template(&format!("{{{{ {text} }}}}"), dialect).faults;
        assert_eq!(faults[0].range, 3..text.len() + 3);
        assert_eq!(
            template(&"text {{ a }} ".repeat(20_000), dialect).faults,
            []
        );
    }
}

/// Texts made of `parts` at random, the same ones every time.
fn random<'a>(parts: &'a [&'a str], count: usize) -> impl Iterator<Item = String> + 'a {
    let mut seed: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut next = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 33) as usize % below
    };
    std::iter::repeat_with(move || {
        let length = 1 + next(12);
        (0..length).map(|_| parts[next(parts.len())]).collect()
    })
    .take(count)
}

fn broken(analysis: &Analysis) -> bool {
    analysis
        .faults
        .iter()
        .any(|fault| fault.kind == FaultKind::Syntax)
}

#[test]
fn what_minijinja_refuses_has_a_fault_and_what_it_renders_has_none() {
    #[rustfmt::skip]
    let parts = [
        "{{", "}}", "{{ a }}", "{{-", "-}}", "{%", "%}", "{% raw %}", "{% endraw %}", "{% if a %}",
        "{% endif %}", "{% else %}", "{% for a in b %}", "{% endfor %}", "{% set a = ", "{#", "#}",
        " a ", "'", "\"", "\\", "r'", "(", ")", "[", "]", "{", "}", "|", "upper", ".", ",", ":",
        "é", "\n", "1", "not ", " is ", "-", "%", "`", "/",
    ];
    let mut environment = minijinja::Environment::new();
    environment.set_syntax(syntax());
    for text in random(&parts, 5_000) {
        let source = unraw(&text);
        let refused = environment.template_from_str(&source).is_err();
        assert_eq!(
            broken(&template(&text, Jinja)),
            refused,
            "{text:?} as {source:?}"
        );
        // minijinja takes `'a' #` for an expression, so only one direction holds here.
        let source = unraw_expression(&text);
        let refused = environment.compile_expression(&source).is_err();
        assert!(
            !refused || broken(&expression(&text, Jinja)),
            "{text:?} as {source:?}"
        );
    }
}

#[test]
fn random_text_is_survived() {
    #[rustfmt::skip]
    let parts = [
        "{{", "}}", "${", "`", "'", "\"", "\\", "/", "/*", "*/", "//", "(", ")", "[", "]", "{", "}",
        "|", "||", "upper", "default(", ".", "?.", ",", ";", ":", "?", "=>", "=", "a", "é", "\n",
        "1", "return ", "const ", "function ", "class ", "if", "else ", "typeof ", "new ", "...",
        "async ", "await ", "<", "<!--", "#", "@", "import ", "\u{2028}", "\0", "let ", "yield ",
    ];
    for text in random(&parts, 5_000) {
        survives(&text);
    }
}
