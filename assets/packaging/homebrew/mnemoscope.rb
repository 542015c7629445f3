# A formula that builds from a release's source. `@…@` are filled in by the release workflow.
class Mnemoscope < Formula
  desc "Terminal inspector and admin console for the memory databases of AI agents"
  homepage "@REPOSITORY@"
  url "@REPOSITORY@/archive/refs/tags/@TAG@.tar.gz"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    ENV["MNEMOSCOPE_COMMIT"] = "@COMMIT@"
    system "cargo", "install", "--profile", "dist", *std_cargo_args
    (buildpath/"mnemoscope.1").write Utils.safe_popen_read(bin/"mnemoscope", "man")
    man1.install "mnemoscope.1"
    generate_completions_from_executable(bin/"mnemoscope", "completions")
  end

  test do
    system bin/"mnemoscope", "demo", "demo.db", "--episodes", "20", "--no-console"
    assert_match "sqlite", shell_output("#{bin}/mnemoscope -d demo.db --format json status")
  end
end
