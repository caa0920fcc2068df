//! How wide a text may be.
//!
//! Widths are those of a wide common typeface (DejaVu), so that a text fits its box whichever font
//! of the stack is there.

/// A way to set text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Font {
    Sans,
    Bold,
    Mono,
}

/// Widths of the printable ASCII characters, in thousandths of the font size.
const SANS: [u16; 95] = [
    318, 401, 460, 838, 636, 951, 780, 275, 391, 391, 500, 838, 318, 361, 318, 337, 637, 637, 637,
    637, 637, 637, 637, 637, 637, 637, 337, 337, 838, 838, 838, 531, 1000, 685, 687, 699, 771, 632,
    576, 775, 752, 295, 295, 656, 558, 863, 749, 788, 604, 788, 695, 635, 611, 732, 685, 989, 686,
    611, 686, 391, 337, 391, 838, 500, 500, 613, 635, 550, 635, 616, 353, 635, 634, 278, 278, 580,
    278, 975, 634, 612, 635, 635, 412, 521, 393, 634, 592, 818, 592, 592, 525, 637, 337, 637, 838,
];

/// The same in bold.
const BOLD: [u16; 95] = [
    349, 457, 522, 838, 696, 1002, 873, 307, 458, 458, 523, 838, 380, 416, 380, 366, 696, 696, 696,
    696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 581, 1000, 775, 763, 735, 831, 684,
    684, 821, 837, 373, 373, 775, 638, 996, 837, 851, 734, 851, 771, 721, 683, 813, 775, 1104, 772,
    725, 726, 458, 366, 458, 838, 500, 500, 676, 716, 594, 716, 679, 436, 716, 713, 343, 343, 666,
    343, 1042, 713, 688, 716, 716, 494, 596, 479, 713, 652, 925, 646, 652, 583, 713, 366, 713, 838,
];

/// The width of a character, in font sizes.
fn width_of(char: char, font: Font) -> f64 {
    let code = u32::from(char);
    if let 0x20..=0x7E = code {
        let index = (code - 0x20) as usize;
        return match font {
            Font::Mono => 0.61,
            Font::Sans => f64::from(SANS[index]) / 1000.0,
            Font::Bold => f64::from(BOLD[index]) / 1000.0,
        };
    }
    match (code, font) {
        (0x0300..=0x036F | 0x200C..=0x200D | 0xFE00..=0xFE0F, _) => 0.0,
        // The widest ligature there is.
        (0xFDFA..=0xFDFD, _) => 9.0,
        (0x1F000..=0x1FAFF | 0x2600..=0x27BF, _) => 1.4,
        (0x2010..=0x2027 | 0x00B7, Font::Mono) => 0.7,
        (0x00A0..=0x024F | 0x0370..=0x052F, Font::Mono) => 0.65,
        (0x00A0..=0x024F | 0x0370..=0x052F, _) => 0.85,
        (0x0590..=0x06FF, _) => 0.9,
        _ => 1.05,
    }
}

/// The width of a text.
pub(super) fn width(text: &str, font: Font, size: f64) -> f64 {
    text.chars().map(|char| width_of(char, font)).sum::<f64>() * size
}

/// The text, shortened with an ellipsis to at most so wide.
pub(super) fn elide(text: &str, font: Font, size: f64, most: f64) -> String {
    if width(text, font, size) <= most {
        return text.to_owned();
    }
    let mut used = width_of('…', font) * size;
    let mut short = String::new();
    for char in text.chars() {
        used += width_of(char, font) * size;
        if used > most {
            break;
        }
        short.push(char);
    }
    let mut short = short.trim_end().to_owned();
    short.push('…');
    short
}

/// The text in lines of at most so wide; what does not fit into so many lines is elided.
pub(super) fn wrap(text: &str, font: Font, size: f64, most: f64, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while words.peek().is_some() {
        if wrapped.len() + 1 == lines {
            let rest: Vec<&str> = words.collect();
            wrapped.push(elide(&rest.join(" "), font, size, most));
            break;
        }
        let mut line = String::new();
        while let Some(word) = words.peek() {
            let longer = match line.is_empty() {
                true => (*word).to_owned(),
                false => format!("{line} {word}"),
            };
            if !line.is_empty() && width(&longer, font, size) > most {
                break;
            }
            line = longer;
            words.next();
        }
        wrapped.push(elide(&line, font, size, most));
    }
    wrapped.retain(|line| !line.is_empty());
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_elided_text_is_never_wider_than_asked_for() {
        for text in [
            "a plain line of words",
            "漢字漢字漢字",
            "🚀🚀🚀🚀",
            "WWWWWWWW",
            "שלום עולם שלום",
        ] {
            for font in [Font::Sans, Font::Bold, Font::Mono] {
                for most in [20.0, 45.0, 80.0] {
                    let short = elide(text, font, 11.0, most);
                    assert!(width(&short, font, 11.0) <= most, "{short}");
                }
            }
        }
    }

    #[test]
    fn a_text_is_wrapped_between_words_and_elided_at_the_end() {
        let lines = wrap("one two three four five six", Font::Mono, 10.0, 60.0, 2);
        assert_eq!(lines, ["one two", "three fo…"]);
    }
}
