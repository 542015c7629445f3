//! The rules, sentence by sentence, in many languages.

use super::*;

fn finder(kind: &str, value: &str, common: bool, others: &[&str]) -> MentionFinder {
    let sought = SoughtHandle { value: value.to_owned(), shape: HandleShape::of(kind, value), common };
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    MentionFinder::new([sought], &others).unwrap()
}

/// Lists the mentions found, as written; `?` marks uncertain ones.
fn found(finder: &MentionFinder, text: &str, place: MentionText) -> Vec<String> {
    let told = finder.find(text, place).into_iter();
    told.map(|span| {
        let mark = if span.certainty.is_certain() { "" } else { "?" };
        format!("{mark}{}", &text[span.start..span.end])
    })
    .collect()
}

fn check(kind: &str, value: &str, rows: &[(&str, &[&str])]) {
    let finder = finder(kind, value, false, &[]);
    for (text, expected) in rows {
        assert_eq!(found(&finder, text, MentionText::default()), *expected, "{value} in {text:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(85))]

    /// The quick check never rejects a text with a mention.
    #[test]
    fn a_text_that_names_somebody_passes_the_first_look(
        before in "[ a-z0-9_]{0,12}",
        word in proptest::sample::select(vec!["ann@x.org", "ANN@X.ORG", "user-1", "Dmitri O'Malley", "O'Malley, Dmitri", "+49 30 9155101"]),
        after in "[ a-z0-9_]{0,12}",
        ids in 0..3_000_usize,
    ) {
        let handle = |value: String| SoughtHandle { shape: HandleShape::of("", &value), value, common: false };
        let own = ["ann@x.org", "user-1", "Dmitri O'Malley", "+49 30 9155101"].map(str::to_owned);
        let finder = MentionFinder::new(own.into_iter().chain((0..ids).map(|n| format!("{n:04x}-session"))).map(handle), &[]).unwrap();
        let text = format!("{before}{word}{after}");
        let mut found = FoundMention::default();
        finder.plain(&text, MentionText::default(), &mut found);
        proptest::prop_assert!(found.spans.is_empty() || finder.may_be_in(&text), "{text}");
    }
}

proptest::proptest! {
    /// For any name and any text.
    #[test]
    fn any_name_is_looked_for_in_any_text(name in "(\\PC|[ \u{200b}\u{2800}\u{3164},']){0,12}", text in "\\PC{0,24}") {
        let finder = finder("name", &name, false, &[&text]);
        for searched in [text.clone(), format!("é {name} é"), format!("{name}{text}")] {
            found(&finder, &searched, MentionText::default());
        }
    }
}

#[test]
fn a_name_that_ends_in_nothing_to_be_seen_is_looked_for_without_it() {
    for name in ["Ana Silva \u{200b}", "Ana Silva\u{2800}", "\u{3164}Ana Silva"] {
        check("name", name, &[("é: Ana Silva, 本", &["Ana Silva"]), ("é 本", &[])]);
    }
}

#[test]
fn whole_numbers_are_told_from_those_that_are_nobodys() {
    let phone = finder("phone", "+1-555-906-6204", false, &[]);
    assert!(phone.may_be_number(5_559_066_204) && !phone.may_be_number(555_906) && !phone.may_be_number(0));
    let id = finder("id", "4711", false, &[]);
    assert!(id.may_be_number(4_711) && !finder("e-mail", "ann@x.org", false, &[]).may_be_number(i64::MIN));
}

#[test]
fn an_address_is_told_by_what_stands_beside_it() {
    let mail: &[&str] = &["ann@x.org"];
    check(
        "e-mail",
        "ann@x.org",
        &[
            ("to ann@x.org, please", mail),
            ("\u{201c}ann@x.org\u{201d}", mail),
            ("«ann@x.org»", mail),
            ("\u{a0}ann@x.org\u{a0}", mail),
            ("\u{feff}ann@x.org", mail),
            ("so\u{feff}ann@x.org\u{200b}so", mail),
            ("😀ann@x.org👍🏽", mail),
            ("请联系ann@x.org谢谢", mail),
            ("ご連絡はann@x.orgまで", mail),
            ("ติดต่อann@x.orgขอบคุณ", mail),
            ("ຕິດຕໍ່ann@x.orgຂອບໃຈ", mail),
            ("ទាក់ទងann@x.orgសូមអរគុណ", mail),
            ("ann@x.orgကိုဆက်သွယ်ပါ", mail),
            ("ann@x.org에게 보내", mail),
            ("пишите на ann@x.org,спасибо", mail),
            ("mailto:ann@x.org?subject=x", mail),
            ("<ann@x.org>;(ann@x.org)", &["ann@x.org", "ann@x.org"]),
            ("ANN@X.ORG.", &["ANN@X.ORG"]),
            ("ask ann@x.org.Next one", mail),
            ("...ann@x.org", mail),
            ("an\u{ad}n@\u{200b}x.org", &["an\u{ad}n@\u{200b}x.org"]),
            ("ａｎｎ＠ｘ．ｏｒｇ", &["ａｎｎ＠ｘ．ｏｒｇ"]),
            ("user_ann@x.org", &["?ann@x.org"]),
            ("ann@x.org_backup", &["?ann@x.org"]),
            ("ann@x.org2", &["?ann@x.org"]),
            ("jo.ann@x.org", &["?ann@x.org"]),
            ("jo+ann@x.org", &["?ann@x.org"]),
            ("joann@x.org", &["?ann@x.org"]),
            ("ann@x.org.uk", &["?ann@x.org"]),
            ("ann@x.org.json", &["?ann@x.org"]),
            ("ann@x.org-a", &["?ann@x.org"]),
            ("ann@x.organ", &["?ann@x.org"]),
            ("ـann@x.orgـ", &["?ann@x.org"]),
            ("אל־ann@x.org־כן", &["?ann@x.org"]),
            ("one\\nann@x.org", &["?ann@x.org"]),
        ],
    );
}

#[test]
fn an_id_is_told_by_what_stands_beside_it() {
    check(
        "id",
        "dmitri.omalley",
        &[
            ("prefs:dmitri.omalley", &["dmitri.omalley"]),
            ("mem:dmitri.omalley:7", &["dmitri.omalley"]),
            ("/srv/dmitri.omalley/x", &["dmitri.omalley"]),
            ("@dmitri.omalley!", &["dmitri.omalley"]),
            ("user_dmitri.omalley", &["?dmitri.omalley"]),
            ("dmitri.omalley_backup.json", &["?dmitri.omalley"]),
            ("dmitri.omalley2", &["?dmitri.omalley"]),
            ("2dmitri.omalley", &["?dmitri.omalley"]),
            ("xdmitri.omalley", &["?dmitri.omalley"]),
            ("dmitri.omalleys", &["?dmitri.omalley"]),
            ("мdmitri.omalleyм", &["dmitri.omalley"]),
            ("dmitri.omalley@elsewhere.org", &["?dmitri.omalley"]),
            ("dmitri", &[]),
        ],
    );
    check("id", "user-1", &[("user-11 user-1", &["user-1"]), ("user-1a", &[]), ("xuser-1", &[])]);
    check(
        "id",
        "anya.k",
        &[("C:\\home\\tanya.k", &["?anya.k"]), ("C:\\home\\anya.k", &["anya.k"]), ("tanya.k", &[]), ("Tanya.K", &[])],
    );
    check("id", "johnsmith", &[("memories.johnsmith.s1", &["johnsmith"]), ("johnsmithson", &[]), ("xjohnsmith", &[])]);
    check("id", "50%", &[("50%0 50%_x 50%", &["?50%", "?50%", "50%"])]);
}

#[test]
fn a_name_is_found_however_it_is_written() {
    check(
        "name",
        "Dmitri O'Malley",
        &[
            ("Dmitri O'Malley", &["Dmitri O'Malley"]),
            ("Dmitri\nO'Malley", &["Dmitri\nO'Malley"]),
            ("Dmitri\r\n  O'Malley", &["Dmitri\r\n  O'Malley"]),
            ("Dmitri  O'Malley", &["Dmitri  O'Malley"]),
            ("Dmitri\u{a0}O\u{2019}Malley", &["Dmitri\u{a0}O\u{2019}Malley"]),
            ("Dmitri\tO\u{2bc}Malley", &["Dmitri\tO\u{2bc}Malley"]),
            ("Dmitri\u{200b} \u{ad}O'Mal\u{ad}ley", &["Dmitri\u{200b} \u{ad}O'Mal\u{ad}ley"]),
            ("DMITRI O'MALLEY'S", &["DMITRI O'MALLEY"]),
            ("«Dmitri O’Malley»", &["Dmitri O’Malley"]),
            ("请问Dmitri O'Malley在吗", &["Dmitri O'Malley"]),
            ("O'Malley, Dmitri", &["O'Malley, Dmitri"]),
            ("O'Malley,Dmitri", &["O'Malley,Dmitri"]),
            ("O'Malley,\u{a0}Dmitri", &["O'Malley,\u{a0}Dmitri"]),
            ("O'Malley Dmitri", &["?O'Malley Dmitri"]),
            ("D. O'Malley", &["?D. O'Malley"]),
            ("D.O'Malley", &["?D.O'Malley"]),
            ("D O'Malley", &["?D O'Malley"]),
            ("d o'malley", &[]),
            ("Dmitri O.", &["?Dmitri O."]),
            ("O'Malley, D.", &["?O'Malley, D."]),
            ("Dmitri J. O'Malley", &["?Dmitri J. O'Malley"]),
            ("Dmitri James O'Malley", &["?Dmitri James O'Malley"]),
            ("Dmitri and O'Malley", &[]),
            ("Dmitri OMalley", &["?Dmitri OMalley"]),
            ("dmitri_o'malley.pdf", &["?dmitri_o'malley"]),
            ("DmitriO'Malley", &["?DmitriO'Malley"]),
            ("Dmitri O'Malleys", &["?Dmitri O'Malley"]),
            ("Dmitri O'Malley_2", &["?Dmitri O'Malley"]),
            ("Dmitri O'Malley-Smith", &["?Dmitri O'Malley"]),
            ("Dmitri O'Malley\u{2014}he", &["Dmitri O'Malley"]),
            ("Dmitri met Mr O'Malley", &[]),
            ("VALUES ('Dmitri O''Malley')", &["Dmitri O''Malley"]),
            (r"echo 'Dmitri O'\''Malley'", &[r"Dmitri O'\''Malley"]),
            ("Dmitri \"Dim\" O'Malley", &["?Dmitri \"Dim\" O'Malley"]),
            ("1,Dmitri,O'Malley,2", &["?Dmitri,O'Malley"]),
            ("O'Malley; Dmitri", &["?O'Malley; Dmitri"]),
            ("Dmitri\n> O'Malley", &["?Dmitri\n> O'Malley"]),
            ("Dmitri\\nO'Malley", &["?Dmitri\\nO'Malley"]),
            ("<b>Dmitri</b><br/><b>O'Malley</b>", &["?Dmitri</b><br/><b>O'Malley"]),
            ("DMİTRİ O'MALLEY", &["DMİTRİ O'MALLEY"]),
            ("/u/dmitri-o-malley", &["?dmitri-o-malley"]),
            ("dmitriomalley, dmitri_omalley", &["?dmitriomalley", "?dmitri_omalley"]),
        ],
    );
    check(
        "name",
        "Zoë Núñez",
        &[("ZOE\u{308} NU\u{301}N\u{303}EZ", &["ZOE\u{308} NU\u{301}N\u{303}EZ"]), ("Zoe Nunez", &[])],
    );
    check("name", "Ana Maria Ruiz", &[("Ana Ruiz", &["?Ana Ruiz"]), ("Ana M. Ruiz", &["?Ana M. Ruiz"])]);
    check(
        "name",
        "Garcia-Lopez, Ana",
        &[("Ana Garcia\u{2010}Lopez", &["Ana Garcia\u{2010}Lopez"]), ("Ana Garcia Lopez", &["?Ana Garcia Lopez"])],
    );
    check("name", "Anna", &[("Annabel and Anna", &["?Anna"])]);
    check(
        "name",
        "Maria",
        &[("Annamaria, Maria.", &["Maria"]), ("Maria-Luisa", &["?Maria"]), ("by maria. Then", &["maria"])],
    );
    check("name", "Bo Li", &[("ask Bo Li now", &["?Bo Li"])]);
    check("name", "王伟", &[("请联系王伟谢谢", &["?王伟"])]);
    check("name", "山田太郎丸", &[("今日は山田太郎丸さんと", &["山田太郎丸"])]);
    check("name", "สมชาย ใจดี", &[("เรียกสมชาย ใจดีมา", &["สมชาย ใจดี"])]);
    check("name", "김철수", &[("김철수는 왔다", &["?김철수"])]);
    check(
        "name",
        "Дмитрий Орлов",
        &[("ДМИТРИЙ\u{a0}ОРЛОВ", &["ДМИТРИЙ\u{a0}ОРЛОВ"]), ("Дмитрий Орлову", &["?Дмитрий Орлов"])],
    );
}

#[test]
fn a_short_name_is_certain_where_names_are() {
    let finder = finder("name", "Bo Li", false, &[]);
    let names = MentionText { names: true, ..MentionText::default() };
    assert_eq!(found(&finder, "Bo Li", names), ["Bo Li"]);
    assert_eq!(found(&finder, "Bo Li", MentionText::default()), ["?Bo Li"]);
    assert_eq!(found(&finder, "with Bo Li", names), ["?Bo Li"]);
}

#[test]
fn a_conversations_id_is_nobodys_where_owners_are_named() {
    let owners = MentionText { people: true, exact: true, ..MentionText::default() };
    let sessions = MentionText { sessions: true, exact: true, ..MentionText::default() };
    let finder = finder("session", "joao-silva", false, &[]);
    assert!(found(&finder, "joao-silva", owners).is_empty());
    assert_eq!(found(&finder, "joao-silva", sessions), ["joao-silva"]);
    assert_eq!(found(&finder, "joao-silva", MentionText::default()), ["joao-silva"]);
}

#[test]
fn a_common_id_is_certain_only_where_nothing_but_ids_stands_and_never_within_numbers() {
    let people = MentionText { people: true, exact: true, ..MentionText::default() };
    let about = MentionText { people: true, ..MentionText::default() };
    for (id, text) in [("42", "42"), ("success", "success"), ("null", "null"), ("2026", "2026"), ("1", "1")] {
        let finder = finder("id", id, true, &[]);
        assert_eq!(found(&finder, text, people), [text]);
        assert_eq!(found(&finder, text, about), [format!("?{text}")]);
        assert_eq!(found(&finder, text, MentionText::default()), [format!("?{text}")]);
    }
    let number = |id: &str, text: &str, people: bool| {
        let place = MentionText { people, exact: people, number: true, ..MentionText::default() };
        found(&finder("id", id, true, &[]), text, place)
    };
    assert_eq!(number("42", "42", true), ["42"]);
    assert!(number("42", "42", false).is_empty() && number("42", "142", true).is_empty());
    for (id, text) in [
        ("42", "2026-02-17T12:42:20"),
        ("2026", "2026-02-17T12:42:20.123Z"),
        ("17", "2026-02-17"),
        ("42", "1.42 or 42.5, 10.0.42.1"),
        ("42", "1,042,000 142 421"),
    ] {
        assert!(found(&finder("id", id, true, &[]), text, MentionText::default()).is_empty(), "{id} in {text}");
    }
    assert_eq!(found(&finder("id", "42", true, &[]), "room 42.", MentionText::default()), ["?42"]);
    assert!(is_plain("42") && is_plain("success") && is_plain("u42") && !is_plain("dmitri.omalley"));
}

#[test]
fn what_others_are_known_by_is_theirs() {
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], &'a str, &'a [&'a str]);
    let rows: &[Row<'_>] = &[
        ("e-mail", "ann@x.org", &["jo.ann@x.org"], "jo.ann@x.org ann@x.org", &["ann@x.org"]),
        ("e-mail", "ann@x.org", &["joann@x.org", "ann@x.org.uk"], "joann@x.org ann@x.org.uk", &[]),
        ("e-mail", "o'h@x.org", &[], "('o''h@x.org')", &["o''h@x.org"]),
        ("id", "bob", &["bob-smith"], "bob-smith_2, bob", &["bob"]),
        ("id", "ann", &["ANN"], "ANN ann Ann", &["ann", "Ann"]),
        ("id", "ann-kay", &["ann-kay "], "met ann-kay here", &["?ann-kay"]),
        ("id", "ann-kay", &["ann-kay "], "ann-kay ", &[]),
        ("id", "ann-kay ", &["ann-kay"], "ann-kay", &[]),
        ("name", "Anna Berg", &["anna berg"], "met Anna Berg, ANNA BERG", &["?Anna Berg", "?ANNA BERG"]),
        ("e-mail", "ann@x.org", &["ann@x.org"], "ann@x.org", &["?ann@x.org"]),
        ("phone", "+1-555-906-6204", &["+1-555-906-6204"], "call +1-555-906-6204", &["?+1-555-906-6204"]),
        ("id", "a%b.c", &["a%25b.c"], "a%25b.c a%b.c", &["a%b.c"]),
        ("id", "anya.k", &["tanya.k"], "C:\\home\\tanya.k", &[]),
    ];
    for (kind, value, others, text, expected) in rows {
        assert_eq!(
            found(&finder(kind, value, false, others), text, MentionText::default()),
            *expected,
            "{value} in {text}"
        );
    }
}

#[test]
fn a_number_is_found_however_it_is_written() {
    check(
        "phone",
        "+1-555-906-6204",
        &[
            ("(555) 906-6204", &["(555) 906-6204"]),
            ("call\u{a0}+1\u{a0}555\u{a0}906\u{a0}6204", &["+1\u{a0}555\u{a0}906\u{a0}6204"]),
            ("＋１５５５９０６６２０４", &["＋１５５５９０６６２０４"]),
            ("tel15559066204", &["?15559066204"]),
            ("155590662041", &[]),
        ],
    );
}

#[test]
fn a_very_long_handle_of_one_letter_takes_no_longer_than_its_text() {
    let finder = finder("id", &"a".repeat(1_000), false, &[]);
    let text = "a".repeat(200_000);
    assert!(finder.find(&text, MentionText::default()).is_empty());
}

#[test]
fn many_handles_are_found_in_one_pass() {
    let handle = |i| SoughtHandle { value: format!("ses-{i:04}-x"), shape: HandleShape::Id, common: false };
    let finder = MentionFinder::new((0..700).map(handle), &[]).unwrap();
    let spans = finder.find("in ses-0042-x, ses-0699-x and ses-0700-x", MentionText::default());
    assert_eq!(spans.iter().map(|s| s.handle).collect::<Vec<_>>(), [42, 699]);
}
