//! The expressions of the documents the language comes from, as they stand there.

use super::*;

/// Templates of the Jinja document, with what they read.
const JINJA: &[(&str, &str)] = &[
    ("{{ now().strftime('%Y%m%d-%H%M%S') }}", ""),
    (
        "{{ now().isoformat() }} {{ now().timestamp() }} {{ now().date() }}",
        "",
    ),
    (
        "{{ state.output | regex_search('([0-9]+)% reduction') }}",
        "state.output",
    ),
    (r"{{ state.text | regex_findall(r'\d+') }}", "state.text"),
    (
        r"{{ state.path | regex_replace(r'\.txt$', '.bak') }}",
        "state.path",
    ),
    ("{{ state.response | parse_json }}", "state.response"),
    ("{{ state.data | tojson(indent=2) }}", "state.data"),
    ("{{ state.key | hash }}", "state.key"),
    (
        "{{ state.approval_status == 'approved' and state.approver_count >= 2 }}",
        "state.approval_status state.approver_count",
    ),
    (
        "Need {{ 2 - state.approver_count }} more approvals",
        "state.approver_count",
    ),
    (
        "{{ state.test_results | selectattr('status', 'equalto', 'pass') | list | length }}",
        "state.test_results",
    ),
    (
        "{{ (passed_tests / total_tests * 100) | round(2) }}",
        "passed_tests total_tests",
    ),
    (
        "{{ 100 - (state.build_time / 60) | int }}",
        "state.build_time",
    ),
    (
        r"{{ state.requirements | join('\n') }}",
        "state.requirements",
    ),
    (
        "cd {{ state.test_directory }} && npm test --coverage",
        "state.test_directory",
    ),
    (
        "{{ state.test_directory is defined }}",
        "state.test_directory?",
    ),
    (
        "Deploy version {{ state.version }} to {{ state.environment }}?",
        "state.version state.environment",
    ),
    (
        "{{ state.build_output.exit_code == 0 }}",
        "state.build_output.exit_code",
    ),
    (
        "k8s/{{ inputs.environment }}/{{ inputs.service_name }}.yaml",
        "inputs.environment inputs.service_name",
    ),
    (
        r#"find {{ inputs.repository }} \
           {% for pattern in inputs.file_patterns %} \
           -name "{{ pattern }}" {% if not loop.last %} -o {% endif %} \
           {% endfor %} \
           -type f
        "#,
        "inputs.repository inputs.file_patterns",
    ),
    (
        r"{{ state.file_list_raw.stdout.strip().split('\n') }}",
        "state.file_list_raw.stdout",
    ),
    (
        "{% for result in state.research_results %}
         Task: {{ result.task }}
         Key findings: {{ result.findings }}
         ---
         {% endfor %}",
        "state.research_results",
    ),
    (
        "{{ state.research_task_list.response | parse_json | length }}",
        "state.research_task_list.response",
    ),
    (
        "plan_{{ state.user_request.input | hash }}",
        "state.user_request.input",
    ),
    (
        "Here's your plan for: {{ state.user_request.input }}",
        "state.user_request.input",
    ),
    (
        "{{ state.search_results.urls | default([]) }}",
        "state.search_results.urls?",
    ),
    (
        "{{ state.search_results.urls | length | default(0) }}",
        "state.search_results.urls",
    ),
    (
        "Large PR #{{ inputs.pr_number }} needs review ({{ state.pr_data.files_changed }} files)",
        "inputs.pr_number state.pr_data.files_changed",
    ),
    (
        r"{{ state.quality_results.stdout | regex_search('Score: (\d+)') | first | int }}",
        "state.quality_results.stdout",
    ),
    (
        "{{ state.test_passed and state.quality_score >= inputs.auto_merge_threshold }}",
        "state.test_passed state.quality_score inputs.auto_merge_threshold",
    ),
    (
        "- Tests: {{ 'Passed ✅' if state.test_passed else 'Failed ❌' }}",
        "state.test_passed",
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
        (
            "Build failed in {fetch_session_id}: {error}",
            "fetch_session_id error",
        ),
        ("export OUT=${HOME} && echo {match_text}", "match_text"),
    ] {
        let found: Vec<_> = braced(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found.join(" "), names);
        assert_eq!(template(&unbrace(text), Jinja).faults, []);
    }
}

/// Templates of the JavaScript document, with what they read.
#[cfg(feature = "js")]
const JS: &[(&str, &str)] = &[
    ("{{ now() }}", ""),
    ("{{ uuid() }}", ""),
    ("{{ file_results[item].hints }}", "file_results[] item"),
    (
        "raw.file_results.{{ item | path_to_key }}.hints_applied",
        "item",
    ),
    (
        "{{ has_errors && retry_count < 5 }}",
        "has_errors retry_count",
    ),
    ("{{ !has_errors }}", "has_errors"),
    ("{{ file_count > 0 && is_ready }}", "file_count is_ready"),
    (
        "Processing {{ valid_files.length }} files",
        "valid_files.length",
    ),
    ("{{ inputs.retries || 3 }}", "inputs.retries"),
    ("{{ inputs.branch || 'main' }}", "inputs.branch"),
    ("Workflow failed: {{ error.message }}", "error.message"),
];

/// Transforms of the JavaScript document, with what they read.
#[cfg(feature = "js")]
const TRANSFORMS: &[(Shape, &str, &str)] = &[
    (
        Shape::Expression,
        "input
          .filter(f => !f.includes('node_modules'))
          .filter(f => !f.endsWith('.d.ts'))
        ",
        "input",
    ),
    (
        Shape::Expression,
        "input.reduce((batches, file, index) => {
          const batchIndex = Math.floor(index / 3);
          if (!batches[batchIndex]) batches[batchIndex] = [];
          batches[batchIndex].push(file);
          return batches;
        }, []).map((files, idx) => ({
          id: `batch_${idx}`,
          files: files,
          status: 'pending'
        }))",
        "input",
    ),
    (
        Shape::Expression,
        "input[0].filter(batch =>
          (input[1][batch.id] || 'pending') === 'pending'
        )",
        "input.0 input.1[]",
    ),
    (
        Shape::Expression,
        r"input.split('\n').filter(l => l.trim())",
        "input",
    ),
    (
        Shape::Expression,
        "{
          total_files: input[0].length,
          failed_tests: input[1].failed || 0,
          ready_to_deploy: input[0].length > 0 && input[1].failed === 0
        }",
        "input.0.length input.1.failed input.0.length input.1.failed",
    ),
    (
        Shape::Expression,
        "input.map(file => ({
          path: file,
          has_test: test_results.files?.includes(file),  // MCP provides flattened access
          batch: file_batches?.findIndex(b => b.includes(file))
        }))",
        "input test_results.files? file_batches?",
    ),
    (
        Shape::Expression,
        "Object.values(input[0]).reduce((sum, r) => sum + r.errors, 0) +
         Object.values(input[1]).reduce((sum, r) => sum + r.errors, 0)",
        "input.0 input.1",
    ),
    (Shape::Expression, "JSON.parse(input)", "input"),
    (Shape::Expression, "input[0] / input[1]", "input.0 input.1"),
    (
        Shape::Expression,
        "typeof output === 'number' && !isNaN(output)",
        "output? output",
    ),
    (
        Shape::Body,
        "try {
          return JSON.parse(input);
        } catch (e) {
          return { error: 'Parse failed', raw: input };
        }",
        "input input",
    ),
    (
        Shape::Expression,
        "{
          failed_count: input[0].length,
          error_types: [...new Set(input[1].map(e => e.type))],
          first_error: input[1][0]
        }",
        "input.0.length input.1 input.1.0",
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
