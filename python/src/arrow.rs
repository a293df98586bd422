//! Tables in and out through Arrow's C stream interface: other libraries take and give them without a copy.

use std::ffi::CStr;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use flock_kg::records::RecordTable;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::fault::Fault;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// The rows as a capsule. The batches are shared, not copied.
pub fn stream<'py>(py: Python<'py>, table: &RecordTable) -> PyResult<Bound<'py, PyCapsule>> {
    let batches: Vec<_> = table.batches().iter().cloned().map(Ok).collect();
    let reader = RecordBatchIterator::new(batches, table.schema().clone());
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
}

/// The columns as a capsule.
pub fn schema<'py>(py: Python<'py>, table: &RecordTable) -> PyResult<Bound<'py, PyCapsule>> {
    let schema =
        FFI_ArrowSchema::try_from(table.schema().as_ref()).map_err(|e| Fault::other(e.to_string()).raise(py))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// The rows of an object that has `__arrow_c_stream__`.
pub fn reader<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let py = frame.py();
    let capsule = frame.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a valid stream by the Arrow PyCapsule interface, and nobody else uses it while the lock of
    // the interpreter is held. `from_raw` moves the stream out and leaves an empty one behind, which the capsule's destructor may drop.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    Ok(Box::new(reader.map_err(|e| Fault::other(e.to_string()).raise(py))?))
}
