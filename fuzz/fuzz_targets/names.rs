//! Names and near names: ids come back, and any text is a fair question.
#![no_main]

use flock_graph::Names;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut names = Names::new();
    for name in text.lines() {
        let id = names.intern(name);
        assert_eq!(names.get(id), name);
    }
    for (id, name) in names.iter().enumerate() {
        assert_eq!(names.id(name), Some(id as u32));
    }
    let question = text.lines().last().unwrap_or_default();
    for near in names.suggest(question, 3) {
        assert!(names.id(&near).is_some());
    }
});
