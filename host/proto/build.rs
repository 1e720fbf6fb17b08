//! Generates the gRPC code from `ephor.proto`, without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=ephor.proto");
    let descriptors = protox::compile(["ephor.proto"], ["."])?;
    tonic_prost_build::configure()
        // `--json` prints these messages as they are: one contract for programs and people.
        .type_attribute(".", "#[derive(serde::Serialize)]")
        .compile_fds(descriptors)?;
    Ok(())
}
