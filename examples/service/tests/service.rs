//! The service as it is used, and as it is killed.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

type Result = std::result::Result<(), Box<dyn Error>>;

fn service(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
    command
        .args(words)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What the shop has booked, without the keys.
fn ledger(place: &Path) -> std::io::Result<Vec<String>> {
    let text = fs::read_to_string(place.join("shop/ledger.txt"))?;
    let lines = text.lines().filter_map(|line| line.split('\t').nth(1));
    Ok(lines.map(str::to_owned).collect())
}

#[test]
fn an_order_runs_to_its_end() -> Result {
    let place = tempfile::tempdir()?;
    let inputs = r#"{"customer": "Ada", "cents": 1200}"#;
    let output = service(place.path(), &["order", inputs]).output()?;
    assert_eq!(
        stdout(&output),
        "Ada paid 1200 cents; \n",
        "{}",
        stderr(&output)
    );
    assert_eq!(
        ledger(place.path())?,
        ["Ada paid 1200 cents", "a parcel for Ada"]
    );
    assert!(place.path().join("shop/journal.db").exists());
    Ok(())
}

#[test]
fn an_order_that_is_not_as_declared_is_refused() -> Result {
    let place = tempfile::tempdir()?;
    let output = service(place.path(), &["order", r#"{"cents": 0}"#]).output()?;
    assert!(!output.status.success());
    let said = "`customer` must be given (a string); `cents` must be at least 1";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    let inputs = r#"{"customer": "Ada", "cents": 200000}"#;
    let output = service(place.path(), &["order", inputs]).output()?;
    let said = "failed in `pay`: the tool `charge` failed: that is more than the card allows";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    Ok(())
}

#[test]
fn a_killed_service_goes_on_with_its_orders_and_charges_nobody_twice() -> Result {
    let place = tempfile::tempdir()?;
    let warehouse = place.path().join("warehouse");
    let open = || Command::new("mkfifo").arg(&warehouse).status();
    assert!(open()?.success());
    let inputs = format!(
        r#"{{"customer": "Ada", "cents": 1200, "warehouse": "{}"}}"#,
        warehouse.display()
    );
    let mut first = service(place.path(), &["order", &inputs]).spawn()?;
    // This returns when the state `pack` reads what the warehouse says.
    let door = File::options().write(true).open(&warehouse)?;
    first.kill()?;
    first.wait()?;
    drop(door);
    // What the dead service left behind may still have the old one open.
    fs::remove_file(&warehouse)?;
    assert!(open()?.success());

    let second = service(place.path(), &["go-on"]).spawn()?;
    let mut door = File::options().write(true).open(&warehouse)?;
    door.write_all(b"one lamp\n")?;
    drop(door);
    let output = second.wait_with_output()?;
    let said = stdout(&output);
    assert!(
        said.contains(" goes on at pack\n"),
        "{said}{}",
        stderr(&output)
    );
    assert!(said.ends_with("Ada paid 1200 cents; one lamp\n"), "{said}");
    assert_eq!(
        ledger(place.path())?,
        ["Ada paid 1200 cents", "a parcel for Ada"]
    );

    let nothing = service(place.path(), &["go-on"]).output()?;
    assert_eq!(stdout(&nothing), "");
    Ok(())
}

#[test]
fn an_order_can_be_taken_by_hand() -> Result {
    let place = tempfile::tempdir()?;
    let inputs = r#"{"customer": "Ada", "cents": 1200}"#;
    let output = service(place.path(), &["by-hand", inputs]).output()?;
    assert_eq!(stdout(&output), "the order ends at send\n");
    assert_eq!(
        ledger(place.path())?,
        ["Ada paid 1200 cents", "a parcel for Ada"]
    );
    Ok(())
}
