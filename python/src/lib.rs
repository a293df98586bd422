//! The native half of the Python package `flock_kg`: a thin binding to the library, without logic of its own.
//!
//! `graph`, `model`, `ask`, `links` and `learn` have the two classes that people use; `table`, `explanation`, `evaluation` and
//! `calibration` what they return. `wait` runs long work without the interpreter's lock and listens for Ctrl-C, `fault` turns errors
//! of the libraries into exceptions with the remedy in Python's words, `arrow` hands tables over without a copy, `objects` makes
//! Python objects of JSON. Everything that needs no speed is Python: `flock_kg/`.

mod arrow;
mod ask;
mod calibration;
mod evaluation;
mod explanation;
mod fault;
mod graph;
mod learn;
mod links;
mod model;
mod objects;
mod rows;
mod table;
mod wait;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the `flock-kg` command with these arguments, the program's name first, and returns its exit status.
#[pyfunction]
fn _run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| flock_cli::run(args))
}

#[pymodule]
fn _flock_kg(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<graph::Graph>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<explanation::Explanation>()?;
    module.add_class::<evaluation::Evaluation>()?;
    module.add_class::<calibration::Calibration>()?;
    module.add_function(wrap_pyfunction!(_run_command, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::_calibration_from_state, module)?)?;
    module.add_function(wrap_pyfunction!(graph::_graph_from_state, module)?)?;
    module.add_function(wrap_pyfunction!(model::_model_from_state, module)?)?;
    module.add_function(wrap_pyfunction!(table::_table_from_state, module)?)?;
    module.add_function(wrap_pyfunction!(table::_table_of_texts, module)?)?;
    Ok(())
}
