# Needs a nixpkgs with Rust 1.95.
# nix-build -E 'with import <nixpkgs> {}; callPackage ./assets/packaging/nix/package.nix { }'
{ lib, rustPlatform, installShellFiles }:

rustPlatform.buildRustPackage {
  pname = "mnemoscope";
  version = (lib.importTOML ../../../Cargo.toml).package.version;
  src = lib.cleanSourceWith {
    src = lib.cleanSource ../../..;
    filter = path: _: baseNameOf path != "target";
  };
  cargoLock.lockFile = ../../../Cargo.lock;
  buildType = "dist";
  env.MNEMOSCOPE_COMMIT = lib.optionalString (lib.pathIsGitRepo ../../../.git) (lib.commitIdFromGitRepo ../../../.git);
  nativeBuildInputs = [ installShellFiles ];
  # The tests start servers and terminals, which the sandbox does not allow.
  doCheck = false;
  postInstall = ''
    $out/bin/mnemoscope man > mnemoscope.1
    installManPage mnemoscope.1
    for shell in bash zsh fish; do $out/bin/mnemoscope completions $shell > mnemoscope.$shell; done
    installShellCompletion mnemoscope.{bash,zsh,fish}
  '';
  meta = {
    description = "Terminal inspector and admin console for the memory databases of AI agents";
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "mnemoscope";
    platforms = lib.platforms.unix;
  };
}
