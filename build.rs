//! Packs the files that ship inside the program, names the source and the target of the build, for `--version`, and says
//! what is left out of a program to hand out.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Folders below `assets/` with files that are read at run time: a quarter as large when packed.
const PACKED: [&str; 5] = ["demo", "layouts", "migrations", "schemas", "themes"];

/// Writes path and text of each file of a folder below `assets/`, each ended by a zero byte.
fn pack(folder: &str, into: &mut impl io::Write) -> io::Result<()> {
    let mut entries = fs::read_dir(format!("assets/{folder}"))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{folder}/{}", entry.file_name().display());
        if entry.file_type()?.is_dir() {
            pack(&path, into)?;
        } else {
            write!(into, "{path}\0{}\0", fs::read_to_string(entry.path())?)?;
        }
    }
    Ok(())
}

fn pack_assets() -> io::Result<()> {
    let target = fs::File::create(Path::new(&variable("OUT_DIR")).join("assets.deflate"))?;
    let mut into = DeflateEncoder::new(target, Compression::best());
    for folder in PACKED {
        println!("cargo::rerun-if-changed=assets/{folder}");
        pack(folder, &mut into)?;
    }
    into.finish()?.flush()
}

/// Runs a git command; `None` outside of a checkout.
fn git(words: &[&str]) -> Option<String> {
    let answer = Command::new("git").args(words).output().ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8(answer.stdout).ok()?.trim().to_owned())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Whether the linker of this build takes an argument: it is given a program of nothing to link.
fn links_with(argument: &str) -> bool {
    let source = Path::new(&variable("OUT_DIR")).join("probe.rs");
    let mut rustc = Command::new(variable("RUSTC"));
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc.args(std::env::var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}")));
    rustc.args(["--target", &variable("TARGET"), &format!("-Clink-arg={argument}"), "-o"]);
    rustc.arg(source.with_extension("bin")).arg(&source);
    fs::write(&source, "fn main() {}").is_ok() && rustc.output().is_ok_and(|linked| linked.status.success())
}

fn main() -> io::Result<()> {
    pack_assets()?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=BUILD_TARGET={}", variable("TARGET"));
    // A build for development would be made again with each commit.
    let released = variable("PROFILE") == "release";
    // Packages are built from sources without a repository.
    println!("cargo::rerun-if-env-changed=MNEMOSCOPE_COMMIT");
    let told = Some(variable("MNEMOSCOPE_COMMIT")).filter(|commit| !commit.is_empty());
    let commit = released.then(|| told.or_else(|| git(&["rev-parse", "HEAD"]))).flatten();
    // The log of HEAD grows with each commit; HEAD itself often only names the branch.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(file) = git(&["rev-parse", "--git-path", file]).filter(|file| released && Path::new(file).exists())
        {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    let source = match (commit, released) {
        (Some(commit), _) => format!("commit {commit:.12}"),
        (None, true) => "no commit".to_owned(),
        (None, false) => "for development".to_owned(),
    };
    println!("cargo::rustc-env=BUILD_SOURCE={source}");
    println!("cargo::rustc-check-cfg=cfg(development)");
    println!("cargo::rustc-check-cfg=cfg(stripped)");
    if !released {
        println!("cargo::rustc-cfg=development");
    }
    // The profile `dist`: a panic ends the program in its hook and names of functions are stripped, so that tables for
    // walking the stack (1.3 MB) are of no use.
    if variable("OPT_LEVEL") == "z" && variable("CARGO_CFG_TARGET_OS") == "linux" {
        let folder = variable("CARGO_MANIFEST_DIR");
        println!("cargo::rerun-if-changed=assets/packaging/stripped.ld");
        println!("cargo::rustc-cfg=stripped");
        println!("cargo::rustc-link-arg-bins=-T{folder}/assets/packaging/stripped.ld");
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
        // Cargo forgets `strip` where a package has a level of its own.
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
        // Functions of the same code are kept once, where the linker can do that.
        if links_with("-Wl,--icf=all") {
            println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        }
    }
    Ok(())
}
