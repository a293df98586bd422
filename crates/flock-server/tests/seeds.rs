//! The seeds of the fuzz target for requests, run without a fuzzer.

#[path = "../../../fuzz/targets/request.rs"]
mod request;

#[test]
fn seeds_of_request() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/request");
    let mut count = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let seed = std::fs::read(entry.unwrap().path()).unwrap();
        (0..=seed.len()).for_each(|len| request::run(&seed[..len]));
        count += 1;
    }
    assert!(count >= 3, "{seeds} has {count} seeds");
}
