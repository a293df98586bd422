//! PyTorch files: the bytes as a whole archive, and as the pickle of a sound archive (which no checksum protects).

use std::io::{Cursor, Write};

use flock_model::import::import_pth_bytes;
use zip::write::SimpleFileOptions;

fn archive(pickle: &[u8]) -> Vec<u8> {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in [("fuzz/data.pkl", pickle), ("fuzz/data/0", &[0; 256])] {
        zip.start_file(name, options).expect("a fresh archive takes files");
        zip.write_all(bytes).expect("memory takes bytes");
    }
    zip.finish().expect("a sound archive closes").into_inner()
}

/// The bytes as they come.
pub fn run(data: &[u8]) {
    let _ = import_pth_bytes("fuzz.pth", data);
    let _ = import_pth_bytes("fuzz.pth", &archive(data));
}
