//! `reproduce`: what it lists, what it writes, and what it says when something is wrong.

mod common;

use common::Place;

/// A dataset under a name of the registry, with a ring of twelve entities and four test triples.
fn dataset(place: &Place, name: &str) {
    std::fs::create_dir_all(place.path(&format!("kg/{name}"))).unwrap();
    let ring: String =
        (0..12).map(|i| format!("e{i}\tnext\te{}\ne{i}\tsecond\te{}\n", (i + 1) % 12, (i + 2) % 12)).collect();
    let back = |from: usize| -> String { (from..from + 4).map(|i| format!("e{}\tback\te{i}\n", i + 1)).collect() };
    place.write(&format!("kg/{name}/train.txt"), ring + &back(4));
    place.write(&format!("kg/{name}/valid.txt"), back(0));
    place.write(&format!("kg/{name}/test.txt"), back(0));
}

#[test]
fn lists_every_item_with_what_it_needs() {
    let place = Place::new();
    dataset(&place, "WDsinger");
    let ran = place.run(&["reproduce", "--data", "kg", "--output", "csv"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows: Vec<&str> = ran.out.lines().collect();
    assert_eq!(rows[0], "name,does,in the paper,graphs,pretrains on,hours");
    assert_eq!(rows.len(), 17);
    let of = |name: &str| rows.iter().find(|r| r.starts_with(&format!("{name},"))).unwrap_or_else(|| panic!("{name}"));
    assert!(of("entity-zero-shot").contains(",1 of 54,–,"), "{}", of("entity-zero-shot"));
    assert!(of("ablations").contains(",1 of 46,0 of 3,"), "{}", of("ablations"));
    assert!(of("noise-injection").contains("needs TRIX") && of("noise-injection").ends_with(",–,–,–"));
    let table = place.run(&["reproduce"]);
    assert!(table.out.contains("pretraining-mix") && table.err.contains("hours: at most"), "{table:?}");
}

#[test]
fn writes_a_report_and_prints_its_main_table() {
    let place = Place::new();
    dataset(&place, "WDsinger");
    let model = ["--model", "entity.safetensors"];
    let args = ["reproduce", "entity-zero-shot", "--data", "kg", "--out", "paper", "--walks", "2", "--passes", "1"];
    let args = [&args[..], &model].concat();
    let ran = place.run(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.starts_with("dataset") && ran.out.contains("WDsinger"), "{}", ran.out);
    for file in ["entity-zero-shot.md", "entity-zero-shot.csv", "entity-zero-shot.svg", "entity-zero-shot-results.json"]
    {
        assert!(ran.err.contains(&format!("written: paper/{file}")), "{}", ran.err);
        assert!(place.path(&format!("paper/{file}")).is_file());
    }
    let page = std::fs::read_to_string(place.path("paper/entity-zero-shot.md")).unwrap();
    assert!(page.contains("flock-kg reproduce entity-zero-shot --data kg --out paper --walks 2 --passes 1"), "{page}");
    assert!(page.contains("1 of 54 graphs; not among them: FBIngram_25"), "{page}");
    // What was asked is not asked again: the same table comes out, from the ranks that were kept.
    assert_eq!(place.run(&args).out, ran.out);
    let ranks = std::fs::read_dir(place.path("paper/work/ranks")).unwrap().count();
    assert_eq!(ranks, 1);
}

#[test]
fn says_what_is_wrong() {
    let place = Place::new();
    let fails = |args: &[&str], message: &str| {
        let ran = place.run(&[&["reproduce"], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.lines().last().unwrap().starts_with(&format!("error: {message}")), "{}", ran.err);
    };
    fails(&["entity-zeroshot"], "no table or figure is called \"entity-zeroshot\"; near names: entity-zero-shot");
    fails(
        &["entity-zero-shot"],
        "entity-zero-shot needs graphs of the paper; hint: --data DIR has datasets by name; flock-kg datasets fetch brings them there",
    );
    fails(&["ensemble", "--data", "nowhere"], "--data nowhere: is no directory");
    fails(&["ablations", "--rows", "wide"], "ablations: no row is called \"wide\"; there are full, backtracking, ");
    fails(&["noise-injection"], "noise-injection: not possible: it needs TRIX");
    dataset(&place, "WDsinger");
    fails(&["ensemble", "--data", "kg", "--graphs", "WDsinger"], "ensemble: WDsinger is none of its graphs");
    let ran = place.run(&["reproduce", "--minutes", "0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
