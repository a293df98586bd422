//! JSON as Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::Value;

use crate::fault::Fault;

/// Anything that can be written as JSON, as JSON. Records of the libraries always can.
pub fn value(of: &impl Serialize) -> Result<Value, Fault> {
    serde_json::to_value(of).map_err(|e| Fault::other(e.to_string()))
}

/// JSON as dictionaries, lists, numbers and texts.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(n), ..) => n.into_bound_py_any(py),
            (None, Some(n), _) => n.into_bound_py_any(py),
            (None, None, x) => x.into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(items) => {
            let list = PyList::empty(py);
            items.iter().try_for_each(|item| list.append(object(py, item)?))?;
            list.into_bound_py_any(py)
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            fields.iter().try_for_each(|(key, item)| dict.set_item(key, object(py, item)?))?;
            dict.into_bound_py_any(py)
        }
    }
}
