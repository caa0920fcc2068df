//! `run_command`: what came out, how it ended, and what to say when it did not.

use serde_json::json;

use crate::support::{SHELLS, Terms};

#[tokio::test]
async fn output_and_exit_code_are_exact_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms.run("echo hi; echo there >&2").await;
        assert_eq!(ran["output"], "hi\nthere\n", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], 0, "{shell}");
        assert_eq!(ran["success"], true, "{shell}");
        let ran = terms.run("printf foo").await;
        assert_eq!(ran["output"], "foo", "{shell}");
        let ran = terms.run("sh -c 'exit 17'").await;
        assert_eq!(
            (&ran["exit_code"], &ran["status"], &ran["success"]),
            (&json!(17), &json!("finished"), &json!(false)),
            "{shell}: {ran:#}"
        );
        let ran = terms.run("cd /; true").await;
        assert_eq!(ran["working_directory"], "/", "{shell}");
        let ran = terms.run("true").await;
        assert_eq!(ran["output"], "", "{shell}");
        terms.terminals.close_all().await;
    }
}
