//! Names and near names: ids come back, and any text is a fair question.

use flock_graph::Names;

/// The bytes as they come.
pub fn run(data: &[u8]) {
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
}
