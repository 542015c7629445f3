//! Stored text is hostile: whatever goes in, what comes out is visible, harmless and as wide as it says.

use mnemoscope::ui::text::{Align, Paint, SafeText};
use proptest::prelude::*;
use ratatui::{buffer::Buffer, layout::Rect, style::Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

fn shown(raw: &str) -> String {
    SafeText::new(raw).to_string()
}

fn columns(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

fn is_dangerous(c: char) -> bool {
    let code = c as u32;
    c.is_control()
        || matches!(code, 0x00ad | 0x034f | 0x061c | 0x115f | 0x1160 | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xe000..=0xf8ff | 0xf_0000..=0x10_ffff
            | 0xe_0000..=0xe_0fff)
        || code & 0xfffe == 0xfffe
}

/// Text as an attacker would write it: every troublesome range is as likely as plain letters.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~]{1,6}",
        "[\\x00-\\x1f\\x7f-\\u{9f}]{1,2}",
        "[\\u{200b}-\\u{200f}\\u{202a}-\\u{202e}\\u{2060}-\\u{206f}\\u{feff}\\u{ad}\\u{2028}]{1,3}",
        "[\\u{300}-\\u{36f}]{1,9}",
        "[\\u{fe00}-\\u{fe0f}\\u{e0100}-\\u{e01ef}]{1,5}",
        "[\\u{e0000}-\\u{e007f}]{1,9}",
        "[\\u{4e00}-\\u{4e20}\\u{ac00}-\\u{ac10}\\u{1100}-\\u{11ff}]{1,3}",
        "[\\u{1f468}\\u{1f3fb}\\u{200d}\\u{2764}\\u{fe0f}\\u{1f1e6}-\\u{1f1e9}\\u{20e3}]{1,6}",
        "[\\u{600}-\\u{6ff}\\u{900}-\\u{97f}\\u{e00}-\\u{e5b}\\u{17b0}-\\u{17d3}]{1,5}",
        "[\\u{e000}-\\u{e00f}\\u{10fff0}-\\u{10ffff}\\u{fff0}-\\u{ffff}]{1,2}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_dangerous_comes_out(raw in hostile(), width in 0usize..40) {
        let text = SafeText::new(&raw);
        let mut all = vec![text.clone(), text.cut(width), text.cut_start(width), text.columns(width, 7),
            text.with_ascii_marks(), SafeText::limited(&raw, width), text.pad(width, Align::Center)];
        all.extend(SafeText::block(&raw));
        all.extend(SafeText::rows(&raw, width));
        for made in all {
            prop_assert!(!made.as_str().contains(is_dangerous), "{:?} from {raw:?}", made.as_str());
            prop_assert_eq!(made.width(), columns(made.as_str()), "{:?}", made.as_str());
            let bare = made.as_str().graphemes(true).find(|cluster| cluster.width() == 0);
            prop_assert_eq!(bare, None, "a mark with no base would be drawn on a neighbour");
        }
    }

    #[test]
    fn a_cut_fits_and_a_padding_fills(raw in hostile(), width in 0usize..40) {
        let text = SafeText::new(&raw);
        prop_assert!(text.cut(width).width() <= width);
        prop_assert!(text.cut_start(width).width() <= width);
        prop_assert!(SafeText::limited(&raw, width).width() <= width);
        prop_assert!(text.columns(3, width).width() <= width);
        prop_assert_eq!(text.pad(width, Align::Right).width(), width);
        prop_assert!(SafeText::rows(&raw, width).all(|row| row.width() <= width));
        if text.width() <= width {
            let whole = [text.cut(width), text.cut_start(width), text.columns(0, width)];
            prop_assert!(whole.iter().all(|same| same.as_str() == text.as_str()));
        }
    }

    #[test]
    fn wrapping_loses_only_blanks(raw in hostile(), width in 30usize..60) {
        let solid = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
        let whole: String = SafeText::block(&raw).iter().map(|line| solid(line.as_str())).collect();
        let wrapped: String = SafeText::rows(&raw, width).map(|row| solid(row.as_str())).collect();
        if !wrapped.contains('…') {
            prop_assert_eq!(wrapped, whole);
        }
    }

    #[test]
    fn drawing_stays_inside(raw in hostile(), width in 0u16..12, hit in "[a-z]?") {
        let text = SafeText::new(&raw);
        let mut buf = Buffer::empty(Rect::new(0, 0, 14, 2));
        let hits = text.find(&hit);
        let used = text.draw(Rect::new(1, 1, width, 1), &mut buf, &Paint::plain(Style::new()), &hits);
        prop_assert!(used <= width);
        let outside = (0..14).filter(|x| *x < 1 || *x > width).all(|x| buf[(x, 1)].symbol() == " ");
        prop_assert!(outside);
    }
}

#[test]
fn every_character_alone_is_harmless() {
    for c in (0..=0x10_ffff).filter_map(char::from_u32) {
        let text = SafeText::new(&c.to_string());
        assert!(text.width() > 0, "{:04X} is invisible", c as u32);
        assert!(!text.as_str().contains(is_dangerous), "{:04X}", c as u32);
        assert_eq!(text.width(), columns(text.as_str()), "{:04X}", c as u32);
        assert!(text.as_str().chars().next().is_some_and(|first| first.width() > Some(0)), "{:04X}", c as u32);
    }
}

#[test]
fn dangerous_characters_become_marks() {
    for (raw, visible) in [
        ("\u{1b}[31mred", "␛[31mred"),
        ("a\0b\u{7f}c\rd\ne", "a␀b␡c␍d↵e"),
        ("\u{9b}31m", "⟨9B⟩31m"),
        ("admin\u{202e}txt.exe", "admin⟨202E⟩txt.exe"),
        ("pass\u{200b}word\u{ad}s", "pass⟨200B⟩word⟨00AD⟩s"),
        (&"\u{200b}".repeat(900), "⟨200B×900⟩"),
        ("hi\u{e0001}\u{e0068}\u{e0069}", "hi⟨E0001⟩⟨tag:hi⟩"),
        ("x\u{fe00}\u{fe01}\u{fe02}", "x⟨FE00×3⟩"),
        ("\u{e000}\u{f8ff}\u{ffff}\u{2028}", "⟨E000⟩⟨F8FF⟩⟨FFFF⟩⟨2028⟩"),
        ("\tx\ty", "    x   y"),
        ("Z\u{301}\u{302}\u{303}\u{304}\u{305}!", "Z\u{301}\u{302}\u{303}⟨+2⟩!"),
        ("\u{301}e", "◌\u{301}e"),
    ] {
        assert_eq!(shown(raw), visible);
    }
}

#[test]
fn ordinary_text_of_the_world_is_left_alone() {
    for raw in [
        "naïve café",
        "Ti\u{1ec3}u thuy\u{1ebf}t e\u{302}\u{301}",
        "東京タワー",
        "한국어",
        "हिन्दी क्षत्रिय",
        "ภาษาไทย น้ำ",
        "עברית",
        "🚀",
    ] {
        assert_eq!(shown(raw), raw);
    }
}

#[test]
fn emoji_are_drawn_so_that_every_terminal_agrees_on_the_width() {
    assert_eq!(shown("⚠\u{fe0f} 1\u{fe0f}\u{20e3}"), "⚠ 1\u{20e3}");
    assert_eq!(shown("👨\u{200d}👩\u{200d}👧"), "👨‿👩‿👧");
    assert_eq!(shown("👍🏽"), "👍‿🏽");
    assert_eq!(shown("🇩🇪🇯🇵 a🇩"), "⟨flag:DE⟩⟨flag:JP⟩ a⟨flag:D⟩");
    assert_eq!(shown("a\u{200d}b"), "a⟨200D⟩b");
}

#[test]
fn cutting_keeps_graphemes_whole_and_says_that_it_cut() {
    let text = SafeText::new("日本語テキスト");
    assert_eq!(text.cut(6).as_str(), "日本…");
    assert_eq!(text.cut(1).as_str(), "…");
    assert_eq!(text.cut(0).as_str(), "");
    assert_eq!(text.cut_start(6).as_str(), "…スト");
    assert_eq!(text.columns(1, 4).as_str(), " 本 ");
    assert_eq!(text.cut_with(5, '~').as_str(), "日本~");
    assert_eq!(SafeText::new("ab").pad(5, Align::Center).as_str(), " ab  ");
}

#[test]
fn a_limit_bounds_the_work_whatever_follows() {
    let zalgo = format!("a{}", "\u{301}".repeat(4_000_000));
    let hidden = "\u{200b}".repeat(4_000_000);
    let long = "word ".repeat(4_000_000);
    for raw in [&zalgo, &hidden, &long] {
        for _ in 0..200 {
            let text = SafeText::limited(raw, 30);
            assert!(text.width() <= 30 && text.as_str().ends_with('…'), "{text}");
        }
        assert_eq!(SafeText::rows(raw, 30).take(50).filter(|row| row.width() > 30).count(), 0);
    }
    assert_eq!(SafeText::limited("exactly ten", 11).as_str(), "exactly ten");
    assert_eq!(SafeText::limited("exactly ten!", 11).as_str(), "exactly te…");
}

#[test]
fn rows_break_at_words_and_lines() {
    let rows: Vec<String> =
        SafeText::rows("the quick brown fox\njumps\n\nover 日本語テキスト", 10).map(|row| row.to_string()).collect();
    assert_eq!(rows, ["the quick", "brown fox", "jumps", "", "over 日本", "語テキスト"]);
    let hard: Vec<String> = SafeText::rows("abcdefghijkl", 5).map(|row| row.to_string()).collect();
    assert_eq!(hard, ["abcde", "fghij", "kl"]);
    assert_eq!(SafeText::rows("anything", 0).count(), 0);
}

#[test]
fn marks_have_an_ascii_spelling_and_stored_look_alikes_do_not() {
    let text = SafeText::new("␛ is not \u{1b}, \u{202e}\n\u{7f}");
    assert_eq!(text.with_ascii_marks().as_str(), "␛ is not ^[, <202E>\\n^?");
}

#[test]
fn hits_and_marks_are_styled_apart() {
    let text = SafeText::new("Ärger\u{7}, ärger");
    let hits = text.find("äRG");
    assert_eq!(hits.iter().map(|hit| &text.as_str()[hit.clone()]).collect::<Vec<_>>(), ["Ärg", "ärg"]);
    let paint = Paint { base: Style::new(), mark: Style::new().dim(), hit: Style::new().bold() };
    let spans: Vec<String> = text.spans(&paint, &hits).iter().map(|span| span.content.to_string()).collect();
    assert_eq!(spans, ["Ärg", "er", "␇", ", ", "ärg", "er"]);
}

#[test]
fn a_mark_is_not_broken_and_a_long_path_is_broken_after_a_slash() {
    // A slash with marks on it is one cluster.
    let parted = SafeText::rows("/\u{300}\u{300}\u{300}\u{300}\u{fe0f}\u{fe0f}", 12)
        .any(|row| row.as_str().starts_with('\u{300}'));
    assert!(!parted, "a mark with no base would be drawn on a neighbour");
    let rows = |raw: &str, width| -> Vec<String> {
        let text = SafeText::new(raw);
        let (clean, raw) = (text.wrap(width), SafeText::rows(raw, width));
        let rows: Vec<String> = clean.map(|row| row.as_str().to_owned()).collect();
        assert_eq!(rows, raw.map(|row| row.as_str().to_owned()).collect::<Vec<_>>());
        rows
    };
    assert_eq!(rows("an escape\u{202e}over", 12), ["an", "escape⟨202E⟩", "over"]);
    assert_eq!(
        rows("file /srv/notes/state/receipts/e9cf87ca.json", 18),
        ["file", "/srv/notes/state/", "receipts/", "e9cf87ca.json"]
    );
}
