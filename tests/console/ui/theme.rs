//! Themes: every role has a style, states are readable, fewer colours stay apart, mistakes are found at their line.

use mnemoscope::ui::{Depth, Glyphs, Look, StyleRole, TextLine, Theme};
use ratatui::style::{Color, Modifier};
use ratatui::{buffer::Buffer, layout::Rect};

/// Roles that are read as text on the terminal's own background.
const READ: [StyleRole; 24] = [
    StyleRole::Muted,
    StyleRole::Accent,
    StyleRole::Header,
    StyleRole::Label,
    StyleRole::Good,
    StyleRole::Warn,
    StyleRole::Bad,
    StyleRole::Info,
    StyleRole::Key,
    StyleRole::Danger,
    StyleRole::Masked,
    StyleRole::Mark,
    StyleRole::Link,
    StyleRole::Number,
    StyleRole::String,
    StyleRole::Word,
    StyleRole::Name,
    StyleRole::Stale,
    StyleRole::Series1,
    StyleRole::Series2,
    StyleRole::Series3,
    StyleRole::Series4,
    StyleRole::Series5,
    StyleRole::Series6,
];

fn luminance(colour: Color) -> f64 {
    let Color::Rgb(r, g, b) = colour else { panic!("{colour:?} is not true colour") };
    let channel = |value: u8| {
        let value = f64::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b)
}

/// The contrast ratio of WCAG 2, from 1 to 21.
fn contrast(a: Color, b: Color) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_is_readable_on_usual_backgrounds_and_on_the_selection() {
    let dark = [Color::Rgb(0, 0, 0), Color::Rgb(0x1e, 0x1e, 0x2e), Color::Rgb(0x28, 0x2c, 0x34)];
    let light = [Color::Rgb(255, 255, 255), Color::Rgb(0xfd, 0xf6, 0xe3), Color::Rgb(0xef, 0xf1, 0xf5)];
    for (theme, grounds) in [(Theme::dark(), dark), (Theme::light(), light)] {
        let selection = theme.style(StyleRole::Selection).bg.expect("a ground");
        for role in READ {
            let colour = theme.style(role).fg.expect("a colour");
            for ground in grounds {
                let ratio = contrast(colour, ground);
                assert!(ratio >= 4.5, "{} {role:?} on {ground:?}: {ratio:.2}", theme.name());
            }
            let look = Look::new(theme.clone(), Glyphs::unicode());
            let mut buf = Buffer::empty(Rect::new(0, 0, 1, 1));
            TextLine::of("x", role).render(buf.area, &mut buf, &look);
            look.select(buf.area, &mut buf, StyleRole::Selection);
            let ratio = contrast(buf[(0, 0)].fg, selection);
            assert!(ratio >= 4.5, "{} {role:?} on the selection: {ratio:.2}", theme.name());
        }
        for badge in [StyleRole::ReadOnly, StyleRole::Writable, StyleRole::Production] {
            let style = theme.style(badge);
            assert!(contrast(style.fg.expect("a colour"), style.bg.expect("a ground")) >= 4.5, "{badge:?}");
        }
    }
}

#[test]
fn the_contrast_theme_has_seven_to_one_everywhere() {
    let theme = Theme::named("contrast").expect("a theme of the program");
    let page = theme.style(StyleRole::Text);
    for role in StyleRole::ALL {
        let style = theme.style(*role);
        let (ink, ground) = (style.fg.or(page.fg).expect("a colour"), style.bg.or(page.bg).expect("a ground"));
        let ratio = contrast(ink, ground);
        assert!(ratio >= 7.0, "{role:?}: {ratio:.2}");
        // The focused row lays its ground and its ink over whatever is there.
        assert!(theme.style(StyleRole::Selection).fg.is_some() && theme.style(StyleRole::SelectionIdle).fg.is_some());
    }
}

#[test]
fn the_terminals_own_background_is_kept() {
    for name in ["dark", "light", "mono"] {
        let theme = Theme::named(name).expect("a theme of the program");
        for role in [
            StyleRole::Text,
            StyleRole::Muted,
            StyleRole::Border,
            StyleRole::Heading,
            StyleRole::Good,
            StyleRole::Track,
        ] {
            assert_eq!(theme.style(role).bg, None, "{name} {role:?}");
        }
    }
}

#[test]
fn no_colour_means_no_colour_and_roles_still_differ() {
    for name in Theme::names() {
        let theme = Theme::named(name).expect("a theme of the program").at(Depth::Mono);
        assert!(theme.is_mono());
        assert!(StyleRole::ALL.iter().all(|role| theme.style(*role).fg.is_none() && theme.style(*role).bg.is_none()));
        assert!(theme.style(StyleRole::Selection).add_modifier.contains(Modifier::REVERSED));
        assert_ne!(theme.style(StyleRole::Bad), theme.style(StyleRole::Good));
    }
}

#[test]
fn fewer_colours_use_only_those_and_keep_states_apart() {
    for name in ["dark", "light", "contrast"] {
        let theme = Theme::named(name).expect("a theme of the program");
        for depth in [Depth::Indexed256, Depth::Ansi16] {
            let theme = theme.at(depth);
            for role in StyleRole::ALL {
                for colour in [theme.style(*role).fg, theme.style(*role).bg].into_iter().flatten() {
                    let fits = match colour {
                        Color::Rgb(..) => false,
                        Color::Indexed(_) => depth == Depth::Indexed256,
                        _ => true,
                    };
                    assert!(fits, "{name} {role:?} {colour:?} at {depth:?}");
                }
            }
            let states =
                [StyleRole::Good, StyleRole::Warn, StyleRole::Bad, StyleRole::Info].map(|role| theme.style(role));
            let series = (0..6).map(|index| theme.style(StyleRole::series(index)));
            for group in [states.to_vec(), series.collect()] {
                for (index, style) in group.iter().enumerate() {
                    assert!(!group[..index].contains(style), "{name} at {depth:?}: {style:?} twice");
                }
            }
        }
    }
}

#[test]
fn the_depth_is_what_the_environment_says() {
    assert_eq!(Depth::detect(None, Some("truecolor"), Some("xterm-256color")), Depth::TrueColor);
    assert_eq!(Depth::detect(None, None, Some("xterm-256color")), Depth::Indexed256);
    assert_eq!(Depth::detect(None, None, Some("linux")), Depth::Ansi16);
    assert_eq!(Depth::detect(Some("1"), Some("truecolor"), Some("xterm")), Depth::Mono);
    assert_eq!(Depth::detect(Some(""), Some("truecolor"), Some("xterm")), Depth::TrueColor);
    assert_eq!(Depth::detect(None, None, Some("dumb")), Depth::Mono);
}

#[test]
fn a_theme_of_ones_own_needs_to_say_only_what_differs() {
    let theme = Theme::parse(
        "themes/sea.toml",
        "[palette]\nsea = { rgb = \"#0077be\", ansi = \"cyan\" }\n[roles]\naccent = \"sea\"\nbad = \"red\"\n",
    )
    .expect("a right theme");
    assert_eq!(theme.name(), "sea");
    assert_eq!(theme.style(StyleRole::Key).fg, Some(Color::Rgb(0, 0x77, 0xbe)), "a key falls back to the accent");
    assert_eq!(theme.style(StyleRole::Danger).fg, Some(Color::Red), "danger falls back to bad");
    assert_eq!(theme.at(Depth::Ansi16).style(StyleRole::Accent).fg, Some(Color::Cyan));
    assert_eq!(theme.style(StyleRole::Muted).fg, None);
}

#[test]
fn mistakes_name_the_file_the_line_and_what_is_meant() {
    for (text, error) in [
        ("[roles]\nacent = \"red\"\n", "my.toml:2: there is no role \"acent\"; did you mean \"accent\"?"),
        ("[roles]\ntext = {}\ngood = \"gren\"\n", "my.toml:3: \"gren\" is not a colour; did you mean \"green\"?"),
        ("[roles]\ngood = \"#12345\"\n", "my.toml:2: \"#12345\" is not a colour; write \"#rrggbb\""),
        ("[roles]\ngood = 7\n", "my.toml:2: a colour is a string, not a integer"),
        ("[roles]\nkey = { bold = \"yes\" }\n", "my.toml:2: bold is true or false"),
        (
            "[roles]\nkey = { weight = 1 }\n",
            "my.toml:2: there is no key \"weight\"; known: fg, bg, ansi, bold, dim, italic, underline, reverse",
        ),
        ("[colors]\n", "my.toml:1: there is no section \"colors\"; did you mean \"roles\"?"),
        ("roles = 1\n", "my.toml:1: a table is needed here, not a integer"),
    ] {
        assert_eq!(Theme::parse("my.toml", text).expect_err("a mistake").to_string(), error);
    }
    let broken = Theme::parse("my.toml", "[roles]\ntext = {\n").expect_err("a mistake");
    assert_eq!(broken.file, "my.toml");
    assert!(broken.line >= 2 && !broken.problem.is_empty(), "{broken}");
}

#[test]
fn what_stands_on_the_ground_of_a_selection_has_a_colour_of_its_own() {
    let area = Rect::new(0, 0, 8, 1);
    for name in ["dark", "light", "contrast"] {
        for depth in [Depth::TrueColor, Depth::Indexed256] {
            let theme = Theme::named(name).expect("a theme of the program").at(depth);
            let look = Look::new(theme, Glyphs::unicode());
            for role in [StyleRole::Selection, StyleRole::SelectionIdle] {
                let mut buf = Buffer::empty(area);
                TextLine::of("row", StyleRole::Text).with(" old", StyleRole::Stale).render(area, &mut buf, &look);
                look.select(area, &mut buf, role);
                for cell in &buf.content {
                    assert_ne!(cell.fg, Color::Reset, "{name} at {depth:?}: {cell:?}");
                    assert!(!cell.modifier.contains(Modifier::ITALIC), "{name} at {depth:?}: {cell:?}");
                }
            }
        }
    }
}

#[test]
fn a_selected_bar_keeps_its_colour_where_the_selection_has_one() {
    let area = Rect::new(0, 0, 4, 1);
    let look = Look::new(Theme::named("contrast").expect("a theme of the program"), Glyphs::unicode());
    let mut buf = Buffer::empty(area);
    TextLine::of("a ██", StyleRole::Series2).render(area, &mut buf, &look);
    look.select(area, &mut buf, StyleRole::Selection);
    assert_eq!(Some(buf[(2, 0)].fg), look.style(StyleRole::Series2).fg);
    assert_eq!(Some(buf[(0, 0)].fg), look.style(StyleRole::Selection).fg);
}
