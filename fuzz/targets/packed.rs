//! Packed graphs: the bytes as they come, and as the body behind a sound header (which a checksum protects). They give
//! an error that can be shown, or a graph that comes back from its own bytes.

use flock_graph::Graph;

/// CRC-32, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)))
}

fn sealed(body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u64).to_le_bytes();
    let checked = [&len, &len, body].concat();
    [b"FLOCKGRF\x01\0\0\0", &crc(&checked).to_le_bytes()[..], &checked].concat()
}

/// The bytes as they come.
pub fn run(data: &[u8]) {
    for bytes in [data, &sealed(data)] {
        match Graph::from_bytes(bytes) {
            Ok(graph) => {
                let packed = graph.to_bytes();
                let again = Graph::from_bytes(&packed).expect("what was packed comes back");
                assert!(again.to_bytes() == packed && again.topology().triples().eq(graph.topology().triples()));
                assert!(graph.entities().iter().eq(again.entities().iter()));
                for (id, name) in graph.entities().iter().enumerate() {
                    assert_eq!(graph.entities().id(name), Some(id as u32));
                }
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.len() < 4096 && !said.contains(char::is_control), "{said:?}");
            }
        }
    }
}
