//! Values of a command in places that cannot take every value.

use std::convert::Infallible;
use std::ops::Range;

use crate::command::{self, HereDocument, MARK, Misplaced, Place, Reading, Standing};

/// A text that is put into a command as it is, when the command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Insert {
    pub(super) range: Range<usize>,
    /// Quoted for its place; anything else is taken for a word.
    pub(super) quoted: bool,
}

/// A value that is misplaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Which of the inserts.
    pub(super) index: usize,
    pub(super) why: Misplaced,
    pub(super) takes: Takes,
}

/// What can stand in a place nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// What never means anything to a shell.
    Plain,
    /// Whole numbers, as texts too.
    Numbers,
    /// Letters, digits and `_`.
    Names,
    /// Anything that is no secret.
    NoSecrets,
}

/// Which of some inserts, in the order they stand, are misplaced.
///
/// From a statement on, nothing is claimed: what it leaves out is not known. A command that is
/// typed into a terminal has places of its own.
pub(super) fn misplaced(text: &str, inserts: &[Insert], is_typed: bool) -> Vec<Finding> {
    let marked = with_marks(text, inserts);
    let known = marked.find("{%").unwrap_or(marked.len());
    let mut found = Found {
        findings: Vec::new(),
        is_typed,
    };
    match command::read(&marked[..known], &mut found) {
        Ok(()) => found.findings,
        Err(never) => match never {},
    }
}

/// The text with a mark in the place of each insert that is quoted.
pub(super) fn with_marks(text: &str, inserts: &[Insert]) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut at = 0;
    for (index, insert) in inserts.iter().enumerate() {
        let Some(before) = text.get(at..insert.range.start) else {
            continue;
        };
        marked.push_str(before);
        if insert.quoted {
            marked.push_str(&format!("{MARK}{index}{END}"));
        } else {
            marked.push('x');
        }
        at = insert.range.end;
    }
    marked.push_str(text.get(at..).unwrap_or_default());
    marked
}

/// The number and the length of the mark at the start of a text.
pub(super) fn mark(text: &str) -> Option<(usize, usize)> {
    let (digits, _) = text.strip_prefix(MARK)?.split_once(END)?;
    let length = MARK.len_utf8() + digits.len() + END.len_utf8();
    Some((digits.parse().ok()?, length))
}

const END: char = '\u{fdd1}';

struct Found {
    findings: Vec<Finding>,
    is_typed: bool,
}

impl Reading for Found {
    type Error = Infallible;

    fn marked(&self, text: &str) -> Option<(usize, usize)> {
        mark(text)
    }

    fn is_typed(&self) -> bool {
        self.is_typed
    }

    fn text(&mut self, _: &str) {}

    fn value(&mut self, standing: &Standing<'_>) -> Result<bool, Infallible> {
        let refused = match (standing.refuses_all(), standing.refuses_some()) {
            (Some(why), _) => Some((why, Takes::Nothing)),
            (None, Some(why)) => Some((why, Takes::Plain)),
            (None, None) => match &standing.place {
                Place::Number(why) => Some((*why, Takes::Numbers)),
                Place::Name(why) => Some((*why, Takes::Names)),
                Place::Document { document, .. } => document
                    .refuses_secrets(self.is_typed)
                    .map(|why| (why, Takes::NoSecrets)),
                _ => None,
            },
        };
        self.findings.extend(refused.map(|(why, takes)| Finding {
            index: standing.value,
            why,
            takes,
        }));
        Ok(true)
    }

    fn document(&mut self, _: &HereDocument) {}

    fn document_ends(&mut self, _: &HereDocument, _: bool) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where values, written as `@`, are misplaced.
    fn places(text: &str) -> Vec<(usize, &'static str)> {
        places_for(text, false)
    }

    fn places_for(text: &str, is_typed: bool) -> Vec<(usize, &'static str)> {
        let inserts: Vec<Insert> = text
            .match_indices('@')
            .map(|(at, _)| Insert {
                range: at..at + 1,
                quoted: true,
            })
            .collect();
        let found = misplaced(text, &inserts, is_typed).into_iter();
        let found = found.filter(|it| matches!(it.takes, Takes::Nothing | Takes::Plain));
        found.map(|it| (it.index, it.why.place)).collect()
    }

    #[test]
    fn comments_and_ansi_quotes_take_no_values() {
        const COMMENT: &str = "in a comment";
        const ANSI: &str = "inside `$'…'`";
        assert_eq!(places("make @ # @ it\necho @"), [(1, COMMENT)]);
        assert_eq!(places("# @ @"), [(0, COMMENT), (1, COMMENT)]);
        assert_eq!(places("echo $'a@b' @"), [(0, ANSI)]);
        assert_eq!(places("(a)# @"), [(0, COMMENT)]);
        assert_eq!(places("x=$(ls # @\n) @"), [(0, COMMENT)]);
        assert_eq!(places("cat <<E\n@ # @\nE\necho @ # @"), [(3, COMMENT)]);
        assert_eq!(places("cat <<E\n@\nE\necho $'@'"), [(1, ANSI)]);
    }

    #[test]
    fn no_value_stands_where_no_quotes_can() {
        const PARAMETER: &str = "inside `${…}`";
        assert_eq!(places("echo ${z:=@} @"), [(0, PARAMETER)]);
        assert_eq!(places("echo \"${y:-@}\" @"), [(0, PARAMETER)]);
        assert_eq!(places("echo ${y:-\"@\"}"), [(0, PARAMETER)]);
        assert_eq!(places("echo \\@ @"), [(0, "after a backslash")]);
        assert_eq!(
            places("cat <<@\nx\n@\n"),
            [(0, "in the delimiter of a here-document")]
        );
        assert_eq!(
            places("echo \"`ls @`\""),
            [(0, "inside back-quotes inside double quotes")]
        );
        assert_eq!(
            places("cat <<E\n@ ${a:-'b'} @\nE\n"),
            [(1, "after a substitution in a here-document")]
        );
    }

    #[test]
    fn a_pattern_that_could_end_a_substitution_takes_no_values_after_it() {
        const PATTERN: &str = "after a pattern of `case` inside `$(…)` that has no `(` before it";
        for text in [
            "x=$(case @ in a) ls @;; esac)",
            "x=$(case 1 in @) ls;; esac)",
            "x=$(if a; then case 1 in b) ls @;; esac; fi)",
            "x=$(for a do case 1 in b) ls @;; esac; done)",
            "x=$(f() case 1 in b) ls @;; esac; f)",
            "x=$(function f case 1 in b) ls @;; esac; f)",
            "x=$(time -p case 1 in b) ls @;; esac)",
            "x=$(case 1 in (esac) ls;; b) ls @;; esac)",
            "x=$(case 1 in (a) echo esac;; b) ls @;; esac)",
            "x=$(case in in in) ls @;; esac)",
        ] {
            let last = text.matches('@').count() - 1;
            assert_eq!(places(text), [(last, PATTERN)], "{text}");
        }
    }

    #[test]
    fn arithmetic_in_a_here_document_hides_nothing_else() {
        const NESTED: &str = "after a substitution in a here-document";
        for text in [
            "cat <<E\n$((1 + `a`)) @\nE",
            "cat <<E\n$((ls)|(wc)) @\nE",
            "cat <<E\n$((1 + $(a))) @\nE",
            "cat <<E\n$((1 + 'a')) @\nE",
        ] {
            assert_eq!(places(text), [(0, NESTED)], "{text}");
        }
    }

    #[test]
    fn no_value_stands_where_the_shells_of_terminals_do_not_agree() {
        for text in [
            r"echo 'it\'s' @",
            r"echo 'a\\\' '@'",
            "echo `ls @`",
            "echo `ls 'a'` @",
            r"echo `ls \$a` @",
            "echo \"`ls \"`\" @",
            "ls # don't\necho @",
            "ls # <<E\necho @",
            "echo \"Done!\" @",
            "echo !@",
            r"sed 's/\@/x/'",
        ] {
            let typed = places_for(text, true);
            assert_eq!(typed.len(), 1, "{text}");
            assert_eq!(places(text), [], "{text}");
        }
        for text in [
            r"echo 'a\\' @ 'a\b' @ '\n@' \'@ it\'s @",
            "echo `date` @ \"`date`\" @ # plain\necho @",
            "! test @ != '!x' && echo \\! '!' @",
        ] {
            assert_eq!(places_for(text, true), [], "{text}");
        }
    }

    /// Which values must be numbers or names, written as `@`.
    fn limited(text: &str, is_typed: bool) -> Vec<(usize, Takes)> {
        let inserts: Vec<Insert> = text
            .match_indices('@')
            .map(|(at, _)| Insert {
                range: at..at + 1,
                quoted: true,
            })
            .collect();
        let found = misplaced(text, &inserts, is_typed).into_iter();
        found.map(|it| (it.index, it.takes)).collect()
    }

    #[test]
    fn what_a_shell_reads_again_is_a_number_or_a_name() {
        use Takes::{Names, Numbers};
        for (text, takes) in [
            ("[[ @ -gt 3 && @ == @ ]]; [ @ -gt 3 ]", vec![(0, Numbers)]),
            ("[[ @ != 3 || $a -lt \"@\" ]]", vec![(1, Numbers)]),
            (
                "if [[ ( @ -eq 1 ) ]]; then test @ -eq 1; fi",
                vec![(0, Numbers)],
            ),
            ("[[ -v @ ]] || [ -v a[@] ]", vec![(0, Names), (1, Numbers)]),
            (
                "a[@]=@; echo a[@] ${a[@]} ${a[1]:-b}",
                vec![(0, Numbers), (3, Numbers)],
            ),
            ("x=@ a=([@]=@ @)", vec![(1, Numbers)]),
            (
                "echo ${x:@} ${x:1:@} \"${x: -1:@}\"",
                vec![(0, Numbers), (1, Numbers), (2, Numbers)],
            ),
            (
                "let @; declare -i x=@; x=@; y=@",
                vec![(0, Numbers), (1, Numbers), (2, Numbers)],
            ),
            (
                "read @ x@; unset @; unset -f @",
                vec![(0, Names), (1, Names), (2, Names)],
            ),
            ("declare @ x=@; export @ x=@", vec![(0, Names)]),
            ("printf -v @ '%d' @", vec![(0, Names)]),
            ("ls @ >&@ 2>@", vec![(1, Numbers)]),
            ("echo $[@] $((@)) @", vec![(0, Numbers), (1, Numbers)]),
        ] {
            assert_eq!(limited(text, false), takes, "{text}");
        }
        for (text, takes) in [
            ("exit @", vec![(0, Numbers)]),
            ("export @=@", vec![(0, Names)]),
            ("printf '%s\\n' @; printf '%d\\n' @", vec![(1, Numbers)]),
            ("echo $a[@] a[@] ${a}@", vec![(0, Numbers)]),
            ("LINES=@", vec![(0, Numbers)]),
        ] {
            assert_eq!(limited(text, true), takes, "{text}");
            assert_eq!(limited(text, false), [], "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_one_takes_values() {
        for text in [
            "echo @#@ '# @' \"# @\" \"$'@'\" a# @ \\# @",
            "echo $(( 1 ))# @ ${a#b}# @ $(b)# @ $((@))",
            "cat <<E\n# @\nE\n",
            "cat <<'E'\n# $'@' ${a:-@}\nE\n",
            "echo `ls @`",
            "{% if a %}# {% endif %}@",
            "[[ $a =~ ^# ]] && echo '@' \"it's # @\"",
            "x=$(grep case @; ls case-studies/@; echo case @ in esac) @",
            "x=\"$(case @ in (a|@) ls @;; (*) ls \"@\" ;& (b) case 1 in (1) echo @; esac; esac; ls @) @\" @",
            "x=`case a in a) echo @;; esac` @",
            "case a in a) echo @;; esac; x=$(ls @) @",
            "cat <<E\n$((1+2)) @ $(( @ * (a + $b) )) @\nE\necho @",
            "[ @ -gt 3 ] && test 3 -lt @ && [[ @ == @ ]] && [[ x =~ @ ]] && [ -n @ -a @ = x ]",
            "grep -v @ f; sort -t @ f; command -v @; test -e @; ls [@]* x[@]; git read @; echo let @ read @",
            "x=@ y=@ make @; export x=@; local x=@; case @ in @) ls @;; esac; for x in @; do ls @; done",
            "read -p @ x; read -d @ x; cat <@ >@ 2>>@; echo @ >&2; echo {@} [[ @ ]] @",
        ] {
            assert_eq!(places(text), [], "{text}");
        }
    }
}
