//! Files inside `.zip` and `.tar.gz`. Nothing is unpacked under a name of the archive's choice:
//! callers read the bytes of one file, and names only serve to find it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use super::error::{FetchError, io_error};
use super::rewrite::check_kind;

/// An archive may unpack to so many bytes.
const MAX_UNPACKED: u64 = 4 << 30;

/// An error lists so many names of an archive.
const LISTED: usize = 6;

type Compressed = tar::Archive<std::io::Take<flate2::read::GzDecoder<BufReader<File>>>>;

/// Passes the file called `inner` to `sink`. Without a file of exactly this path, it is the only one
/// whose path ends in it.
pub(super) fn read<T>(
    archive: &Path,
    inner: &str,
    sink: impl FnOnce(&mut dyn BufRead) -> Result<T, FetchError>,
) -> Result<T, FetchError> {
    let shown = archive.display().to_string();
    let bad = |reason: String| FetchError::Archive { file: shown.clone(), reason };
    let broken = |e: &dyn std::fmt::Display| bad(format!("the archive is damaged: {e}"));
    let open = || File::open(archive).map(BufReader::new).map_err(io_error(archive));
    check_kind(&shown, &mut open()?, "an archive")?;
    if archive.extension().is_some_and(|e| e == "zip") {
        let mut zip = zip::ZipArchive::new(open()?).map_err(|e| broken(&e))?;
        let names = zip.file_names().flatten().map(|name| name.into_owned());
        let name = choose(names.filter(|name| !name.ends_with('/')).collect(), inner).map_err(bad)?;
        let entry = zip.by_name(&name).map_err(|e| broken(&e))?;
        return sink(&mut BufReader::new(entry));
    }
    let tar = || -> Result<Compressed, FetchError> {
        Ok(tar::Archive::new(flate2::read::GzDecoder::new(open()?).take(MAX_UNPACKED)))
    };
    let mut names = Vec::new();
    for entry in tar()?.entries().map_err(|e| broken(&e))? {
        let entry = entry.map_err(|e| broken(&e))?;
        if entry.header().entry_type().is_file() {
            names.push(String::from_utf8_lossy(&entry.path_bytes()).into_owned());
        }
    }
    let name = choose(names, inner).map_err(bad)?;
    let mut tar = tar()?;
    for entry in tar.entries().map_err(|e| broken(&e))? {
        let entry = entry.map_err(|e| broken(&e))?;
        if entry.header().entry_type().is_file() && String::from_utf8_lossy(&entry.path_bytes()) == name.as_str() {
            return sink(&mut BufReader::new(entry));
        }
    }
    Err(bad(format!("no {inner} in it")))
}

/// Chooses the file called `inner`. The error says what is there instead.
fn choose(mut names: Vec<String>, inner: &str) -> Result<String, String> {
    if let Some(name) = names.iter().find(|name| name.trim_start_matches("./") == inner) {
        return Ok(name.clone());
    }
    let list = |names: &[String]| {
        let more = if names.len() > LISTED { ", …" } else { "" };
        names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ") + more
    };
    let all = list(&names);
    // What macOS adds to archives are not the files.
    names.retain(|name| Path::new(name).ends_with(inner) && !name.starts_with("__MACOSX/"));
    match &names[..] {
        [name] => Ok(name.clone()),
        [] if all.is_empty() => Err(format!("no {inner} in it; it has no files")),
        [] => Err(format!("no {inner} in it; it has {all}")),
        several => Err(format!("more than one {inner} in it: {}", list(several))),
    }
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn a_file_is_chosen_by_its_path_or_by_the_end_of_it() {
        let choose = |names: &[&str]| choose(names.iter().map(|n| n.to_string()).collect(), "train.txt");
        assert_eq!(choose(&["old/train.txt", "./train.txt"]).unwrap(), "./train.txt");
        assert_eq!(choose(&["__MACOSX/train.txt", "FB/train.txt", "FB/xtrain.txt"]).unwrap(), "FB/train.txt");
        // Where a name points does not matter: it is never used as a path.
        assert_eq!(choose(&["../../train.txt"]).unwrap(), "../../train.txt");
        assert_eq!(
            choose(&["a/train.txt", "b/train.txt"]),
            Err("more than one train.txt in it: a/train.txt, b/train.txt".into())
        );
        assert_eq!(choose(&["a", "b"]), Err("no train.txt in it; it has a, b".into()));
        assert_eq!(choose(&[]), Err("no train.txt in it; it has no files".into()));
    }
}
